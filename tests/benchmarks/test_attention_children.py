"""A killed benchmark leaves no search behind, and none removes the folder of a live one."""

import os
import signal
import subprocess
import sys
import time

import pytest
from attention_makers import FULL, machine, made_row
from benchmarks.attention import _parse
from benchmarks.attention_run import RunOptions, check_nothing_runs, clear, measure, until_we_end
from benchmarks.attention_session import Benchmark
from benchmarks.results_file import ROOT

from hotloop.errors import RunHeld
from hotloop.store.lock import FolderLock

STARTER = """
import subprocess, sys, time
from benchmarks.attention_run import until_we_end
sleeper = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
judged = (
    "import os, subprocess, sys; print(os.getpid(), flush=True); "
    f"subprocess.run([sys.executable, '-c', {sleeper!r}], start_new_session=True)"
)
command = [sys.executable, "-c", judged]
if sys.argv[1] == "guarded":
    command = until_we_end(command)
subprocess.Popen(command, start_new_session=True)
time.sleep(60)
"""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ended(pid, within_s):
    end = time.monotonic() + within_s
    while is_alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not is_alive(pid)


@pytest.mark.parametrize("how", ["guarded", "alone"])
def test_a_killed_benchmark_takes_its_search_and_judge_with_it(how):
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, how], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    started = [int(starter.stdout.readline()) for _ in range(2)]
    try:
        assert len({os.getsid(pid) for pid in (starter.pid, *started)}) == 3
        starter.send_signal(signal.SIGKILL)
        starter.wait()
        within_s = 10.0 if how == "guarded" else 0.1  # what is not guarded would live on
        assert [ended(pid, within_s) for pid in started] == [how == "guarded"] * 2
    finally:
        starter.kill()
        for pid in started:
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)
        starter.stdout.close()


def test_a_search_lives_while_its_starter_does_and_drains_at_an_interrupt():
    code = (
        "import time\ntry:\n  print('up', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n  print('drained')"
    )
    process = subprocess.Popen(
        until_we_end([sys.executable, "-c", code]), cwd=ROOT, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert (out, process.returncode) == ("drained\n", 0)


def test_a_command_runs_as_it_would_alone():
    command = until_we_end([sys.executable, "-c", "import sys; print(sys.argv); sys.exit(7)", "a"])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "['-c', 'a']\n")
    command = until_we_end([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 128 + 9


def test_a_command_whose_starter_is_gone_already_is_not_begun(tmp_path):
    code = (
        "import sys; from benchmarks.attention_child import main; "
        f"sys.exit(main(['1', '/bin/touch', {str(tmp_path / 'begun')!r}]))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 1
    assert not (tmp_path / "begun").exists()


def test_the_folder_of_a_live_run_is_not_removed_and_that_of_a_dead_one_is(tmp_path):
    folder = tmp_path / "full-128"
    folder.mkdir()
    (folder / "journal").write_text("x")
    lock = FolderLock(folder)
    with pytest.raises(RunHeld, match=f"pid {os.getpid()}"):
        clear(folder)
    assert (folder / "journal").exists()
    options = RunOptions(device="cpu", runs=tmp_path, deadline=time.monotonic() + 60)
    with pytest.raises(RunHeld):
        measure(FULL, "", options)
    lock.release()
    clear(folder)
    assert not folder.exists()
    clear(folder)  # what is not there is clear


def test_a_benchmark_does_not_begin_beside_a_live_run(tmp_path):
    folder = tmp_path / "runs" / "0a1b2c3d" / "softcap-64"
    folder.mkdir(parents=True)
    lock = FolderLock(folder)
    args = _parse(["--runs", str(tmp_path / "runs")])
    with pytest.raises(RunHeld, match="softcap-64"):
        Benchmark(args, ["0"], tmp_path / "r.json", machine(made_row))
    lock.release()
    check_nothing_runs(tmp_path / "runs")
    Benchmark(args, ["0"], tmp_path / "r.json", machine(made_row))
    check_nothing_runs(tmp_path / "nowhere")


def test_a_row_whose_folder_is_taken_meanwhile_is_not_measured(tmp_path, capsys):
    def held(case, gpu, options):
        raise RunHeld("the folder is held by pid 7")

    args = _parse(["--runs", str(tmp_path / "runs")])
    assert Benchmark(args, ["0"], tmp_path / "r.json", machine(held)).run([FULL], []) == 1
    assert "full-128: not begun: the folder is held by pid 7" in capsys.readouterr().out
