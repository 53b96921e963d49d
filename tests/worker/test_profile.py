"""Counters from a table that a tool wrote, and a line of words from a tool that does not work."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import scaled_rows

from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Performance, Tier
from hotloop.verify import LocalVerifier
from hotloop.worker.profile import Profiler
from hotloop.worker.profile_metrics import (
    ALL_METRICS,
    CORE_METRICS,
    TIME,
    read_table,
    stall,
    summarise,
)
from hotloop.worker.profile_ncu import Counters, find_ncu, read_counters

FIXED = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC"'  # noqa: E501
UNITS = {"dram": "%", "gpu": "ns", "lts": "%", "sm": "%", "smsp": "", "l1tex": ""}
MATMUL = {
    TIME: "1,200,000",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "21.5",
    "lts__t_sector_hit_rate.pct": "83.25",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "64",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": "61.125",
    "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_elapsed": "n/a",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "12.4",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": "0",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "1,000",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "10,000",
    stall("long_scoreboard"): "2.5",
    stall("barrier"): "4",
    stall("gmma"): "",
    "smsp__average_warp_latency_per_inst_issued.ratio": "10",
}
COPY = {name: "n/a" for name in MATMUL} | {
    TIME: "300,000",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "91.75",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": "100",
}
FOUND = {
    "dram_throughput_frac": 0.215,
    "l2_hit_frac": 0.8325,
    "sm_throughput_frac": 0.64,
    "tensor_pipe_frac": 0.6112,
    "achieved_occupancy_frac": 0.124,
    "shared_conflict_frac": 0.1,
    "stall_barrier_frac": 0.4,
    "time_share_frac": 0.8,
}


def wide(launches, *, noise=True):
    """What `ncu --csv --page raw` writes: a column for each metric, units below the header."""
    names = sorted(launches[0][1])
    quoted = ",".join(f'"{name}"' for name in names)
    units = ",".join(f'"{UNITS[name.split("__")[0]]}"' for name in names)
    lines = [f"{FIXED},{quoted}", '"",' * 11 + units]
    for i, (kernel, metrics) in enumerate(launches):
        values = ",".join(f'"{metrics[name]}"' for name in names)
        lines.append(
            f'"{i}","77","python3.12","127.0.0.1","{kernel}","1","7","(128, 1, 1)",'
            f'"(64, 1, 1)","0","9.0",{values}'
        )
    if noise:
        lines.insert(0, "==PROF== Connected to process 77 (/usr/bin/python3.12)")
        lines.append("==PROF== Disconnected from process 77")
    return "\n".join(lines) + "\n"


def long(launches):
    """What the other pages write: a row for each metric."""
    lines = [f'{FIXED},"Section Name","Metric Name","Metric Unit","Metric Value"']
    for i, (kernel, metrics) in enumerate(launches):
        for name, value in metrics.items():
            lines.append(
                f'"{i}","77","python3","h","{kernel}","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0",'
                f'"Command line profiler metrics","{name}","{UNITS[name.split("__")[0]]}","{value}"'
            )
    return "\n".join(lines)


TWO = [("matmul_kernel", MATMUL), ("copy_kernel", COPY)]


@pytest.mark.parametrize("write", [wide, long])
def test_both_layouts_give_the_slowest_kernel(write):
    assert summarise(read_table(write(TWO))) == ("matmul_kernel", FOUND)


def test_one_kernel_has_no_share_and_no_counter_that_was_not_read():
    kernel, counters = summarise(read_table(wide([("copy_kernel", COPY)])))
    assert kernel == "copy_kernel"
    assert counters == {"dram_throughput_frac": 0.9175, "global_load_used_frac": 1.0}


@pytest.mark.parametrize(("unit", "factor"), [("us", 1e3), ("msecond", 1e6), ("nsecond", 1.0)])
def test_times_are_compared_in_one_unit(unit, factor):
    text = wide([("k", {TIME: "2.5"} | {"lts__t_sector_hit_rate.pct": "1"})])
    (launch,) = read_table(text.replace('"ns"', f'"{unit}"'))
    assert launch.metrics[TIME] == pytest.approx(2.5 * factor)


@pytest.mark.parametrize(
    "text",
    ["", "==ERROR== nothing\n", '"ID"', wide([("k", dict.fromkeys(MATMUL, "n/a"))]),
     FIXED + "\n" + '"0","7"\n', '"ID","Metric Name"\n"0","x__y"\n', wide(TWO)[:600]],
)  # fmt: skip
def test_a_table_without_counters_is_refused_not_guessed(text):
    with pytest.raises(ValueError, match="no launch has counters"):
        summarise(read_table(text))


def test_counters_travel_in_a_verdict():
    performance = Performance(
        latency_ms=1.0, spread_ms=0.1, samples=5, timer="cupti", l2="cold",
        counters=FOUND, counters_kernel="matmul_kernel", counters_refused=None,
    )  # fmt: skip
    assert from_json(Performance, to_json(performance)) == performance


@pytest.fixture
def fake_ncu(tmp_path, monkeypatch):
    """Put a shell script called `ncu` first on PATH; in it, $log is the file asked for."""

    def install(body):
        tools = tmp_path / "tools"
        tools.mkdir(exist_ok=True)
        script = tools / "ncu"
        script.write_text(
            '#!/bin/sh\necho "$@" >> "$HOME/calls"\nlog=\nwhile [ $# -gt 0 ]; do\n'
            '  [ "$1" = --log-file ] && log=$2\n  [ "$1" = --metrics ] && metrics=$2\n'
            f'  [ "$1" = -P ] && break\n  last=$1\n  shift\ndone\n{body}\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        return script

    return install


def profile(tmp_path, *, deadline_s=60.0, message=None):
    folder = tmp_path / "room"
    folder.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    return read_counters(message or {"handle": ""}, folder, env, deadline_s=deadline_s)


def table(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def test_counters_come_back_from_a_tool_that_works(tmp_path, fake_ncu):
    source = table(tmp_path, wide(TWO))
    fake_ncu(f'cat {source} > "$log"; echo \'{{"launched": 2, "data": "judge"}}\'')
    found = profile(tmp_path)
    assert found == Counters(FOUND, "matmul_kernel")
    calls = (tmp_path / "room" / "calls").read_text()
    assert "--clock-control none" in calls  # it would lock the device's clocks
    assert ",".join(ALL_METRICS) in calls
    assert calls.count("--csv") == 1


def test_a_run_on_zeros_is_marked(tmp_path, fake_ncu):
    source = table(tmp_path, wide(TWO))
    fake_ncu(f'cat {source} > "$log"; echo \'{{"launched": 2, "data": "zeros"}}\'')
    assert profile(tmp_path).values == FOUND | {"zero_inputs": 1.0}


def test_a_set_with_an_unknown_metric_is_asked_for_again_with_fewer(tmp_path, fake_ncu):
    source = table(tmp_path, wide(TWO))
    fake_ncu(
        f'[ "$metrics" = "{",".join(CORE_METRICS)}" ] && cat {source} > "$log" && exit 0\n'
        'echo "==ERROR== Failed to find metric smsp__something" > "$log"; exit 1'
    )
    assert profile(tmp_path).kernel == "matmul_kernel"


def test_missing_permission_is_said_and_holds_for_all(tmp_path, fake_ncu):
    fake_ncu('echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" > "$log"')
    found = profile(tmp_path)
    assert found.for_good
    assert "ERR_NVGPUCTRPERM" in found.refused
    assert not found.values


def test_what_a_kernel_prints_is_no_counter_and_no_refusal(tmp_path, fake_ncu):
    """Device printf goes to the output of the watched process, never to the tool's log."""
    source = table(tmp_path, wide(TWO))
    forged = tmp_path / "forged.csv"
    forged.write_text(wide([("forged", MATMUL | {TIME: "9,000,000"})]))
    fake_ncu(
        f'cat {source} > "$log"; cat {forged}\n'
        'echo "==ERROR== ERR_NVGPUCTRPERM"; echo \'{"data": "zeros"}\'\n'
        'echo \'{"launched": 2, "data": "judge"}\''
    )
    assert profile(tmp_path) == Counters(FOUND, "matmul_kernel")


def test_a_printed_table_without_one_in_the_log_gives_nothing(tmp_path, fake_ncu):
    forged = table(tmp_path, wide(TWO))
    fake_ncu(f'echo "==PROF== x" > "$log"; cat {forged}; echo "==ERROR== ERR_NVGPUCTRPERM"')
    found = profile(tmp_path)
    assert "no counters" in found.refused
    assert not found.for_good
    assert not found.values


def test_a_permission_error_in_a_name_is_none(tmp_path, fake_ncu):
    source = table(tmp_path, wide([("==ERROR== ERR_NVGPUCTRPERM", COPY)]))
    fake_ncu(f'echo "==PROF== ERR_NVGPUCTRPERM" > "$log"; cat {source} >> "$log"')
    assert profile(tmp_path).kernel == "==ERROR== ERR_NVGPUCTRPERM"


@pytest.mark.parametrize(
    ("printed", "is_marked"),
    [
        ('printf without an end{"launched": 1, "data": "zeros"}', True),
        ('{"data": "zeros"}\nlast words', False),
        ('{"data": [', False),
        ("[1, 2]", False),
    ],
)
def test_the_mark_is_read_from_the_last_line(tmp_path, fake_ncu, printed, is_marked):
    source = table(tmp_path, wide(TWO))
    fake_ncu(f"cat {source} > \"$log\"; echo '{printed}'")
    assert ("zero_inputs" in profile(tmp_path).values) == is_marked


@pytest.mark.parametrize("write", [wide, long])
def test_the_name_of_a_kernel_is_one_short_line(write):
    name = "bad\x1b[31m\x0b\u2028name " + "x" * 200
    kernel, counters = summarise(read_table(write([(name, COPY)])))
    assert kernel.startswith("bad [31m name xxx")
    assert len(kernel) == 80
    assert counters["dram_throughput_frac"] == 0.9175


def test_a_missing_tool_is_said_and_holds_for_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    if find_ncu() is not None:
        pytest.skip("this machine has ncu where it is always found")
    found = profile(tmp_path)
    assert found.for_good
    assert "not installed" in found.refused


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("head -c 100000 /dev/urandom > $log; head -c 100000 /dev/urandom", "no counters"),
        ("exit 3", "it wrote nothing"),
        ('echo "==PROF== x" > $log; echo "==ERROR== The application returned an error code (1)"',
         "The application returned an error code (1)"),
        ("kill -9 $$", "no counters"),
    ],
)  # fmt: skip
def test_a_tool_that_fails_is_words(tmp_path, fake_ncu, body, words):
    fake_ncu(body)
    found = profile(tmp_path)
    assert words in found.refused
    assert len(found.refused) < 300
    assert not found.for_good
    assert not found.values


def test_a_tool_that_hangs_is_killed_with_what_it_started(tmp_path, fake_ncu):
    fake_ncu('sleep 900 & echo $! > "$HOME/child"; (trap "" TERM; sleep 900)')
    begun = tmp_path / "room" / "child"
    for deadline_s in (1.0, 4.0, 16.0, 64.0):  # a busy machine takes a while to start a script
        found = profile(tmp_path, deadline_s=deadline_s)
        assert f"within {deadline_s:.0f} s" in found.refused
        if begun.exists() and begun.read_text().strip():
            break
    assert _ends(int(begun.read_text()))


def _ends(pid, *, within_s=60.0):
    """Whether a process that should be killed ends, long before it would by itself.

    Its signal has been sent when the tool's own end is known, but whoever is to die has to be
    given a moment on a core for it.
    """
    end = time.monotonic() + within_s
    while _runs(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def _runs(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # gone, before or while it was read
        return False
    return text.rsplit(")", 1)[1].split()[0] != "Z"


def test_a_process_that_nobody_kills_is_seen_to_run():
    with subprocess.Popen(["sleep", "900"]) as process:
        try:
            assert not _ends(process.pid, within_s=0.05)
        finally:
            process.kill()
        assert _ends(process.pid)


def test_the_watched_process_says_what_it_lacks(tmp_path, fake_ncu):
    """The tool starts the command it is given, with our package; here no GPU answers it."""
    fake_ncu(f'exec {sys.executable} "$@"')
    recording = {"recording": '{"buffers": [], "launches": [], "outputs": []}', "cubins": {}}
    found = profile(tmp_path, message={"handle": "", "set_offset": 0, "used_bytes": 64} | recording)
    assert found.refused
    output = (tmp_path / "room" / "output.txt").read_text()
    assert "hotloop" in output
    assert "cuda" in output.lower()
    assert "ModuleNotFoundError" not in output


class Room:
    """Folders as a workroom gives them, without its processes."""

    def __init__(self, path):
        self.path = path

    def folder(self, name):
        (self.path / name).mkdir()
        return self.path / name

    def environment(self, folder):
        return {}

    def discard(self, folder):
        raise AssertionError("nothing is started for a forward that cannot be recorded")


def test_only_a_faster_candidate_is_worth_a_profile(tmp_path):
    profiler = Profiler(Room(tmp_path))
    assert [profiler.is_best(ms) for ms in (3.0, 4.0, 3.0, 2.9)] == [True, False, False, True]
    known = Profiler(Room(tmp_path), incumbent_ms=2.0)
    assert [known.is_best(ms) for ms in (2.0, 1.9)] == [False, True]
    known.set_best(5.0)  # of another run, whose best is slower
    assert [known.is_best(ms) for ms in (5.0, 4.0)] == [False, True]


class Unrecordable:
    """An evaluation whose candidate launches more than kernels of its own."""

    board = None
    asked = 0

    def record(self):
        self.asked += 1
        return {"refused": "a pointer argument is a list, not a tensor"}, []


class Broken(Unrecordable):
    """One that does not answer as it should."""

    def record(self):
        self.asked += 1
        raise OSError("the pipe is gone")


def test_a_forward_that_cannot_be_recorded_is_words_and_the_next_is_tried(tmp_path):
    profiler, evaluation = Profiler(Room(tmp_path)), Unrecordable()
    for _ in range(4):
        assert "not a tensor" in profiler.counters(evaluation, ("k",)).refused
    assert evaluation.asked == 4


def test_what_fails_twice_is_not_tried_a_third_time(tmp_path):
    profiler, evaluation = Profiler(Room(tmp_path)), Broken()
    found = [profiler.counters(evaluation, ("k",)) for _ in range(4)]
    assert {f.refused for f in found} == {"the profiler failed: OSError: the pipe is gone"}
    assert evaluation.asked == 2


@pytest.mark.gpu
def test_a_gpu_gives_counters_of_what_is_faster_or_says_why_not(scaled_rows_file):
    judge = LocalVerifier("cuda", call_timeout_s=10.0, profile=True)
    try:
        judge.load(scaled_rows.problem(scaled_rows_file, "cuda", rows=1021, columns=1000))
        first = judge.verify(scaled_rows.triton(columns=1000), Tier.FAST).performance
        judge.load(
            scaled_rows.problem(scaled_rows_file, "cuda", rows=1021, columns=1000),
            incumbent_ms=1e-6,
        )
        slower = judge.verify(scaled_rows.triton(columns=1000), Tier.FAST).performance
    finally:
        judge.close()
    assert bool(first.counters) != bool(first.counters_refused)
    assert not slower.counters
    assert slower.counters_refused is None
    assert all(0 <= value <= 1 for value in first.counters.values())
