"""Every kind of bad input: its exit code, one line on stderr, nothing on stdout."""

import errno
import fcntl
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.cli import main as main_module
from hotloop.cli import options
from hotloop.cli.main import main
from hotloop.cli.output import check_file, writing
from hotloop.errors import ConfigError, HotloopError

ATTENTION = """\
B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
"""
HAS_GPU = Path("/dev/nvidiactl").exists()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a problem, a kernel and files that are neither; it is the cwd."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOTLOOP_KERNELBENCH", raising=False)
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    (tmp_path / "good.py").write_text(ATTENTION)
    (tmp_path / "other.py").write_text(ATTENTION.replace("q_idx - kv_idx", "q_idx"))
    (tmp_path / "kernel.py").write_text("class ModelNew: ...")
    (tmp_path / "nothing.py").write_text("x = 1")
    (tmp_path / "broken.py").write_text("def f(:")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "kernel.txt").write_text("")
    return tmp_path


def refuse(capsys, code, *args):
    """Run the command; check its code and return its one line."""
    assert main(args) == code
    captured = capsys.readouterr()
    complaints = [x for x in captured.err.splitlines() if x.startswith("hotloop: ")]
    assert len(complaints) == 1, captured.err
    assert captured.err.splitlines()[-1] == complaints[0]
    assert "Traceback" not in captured.err
    assert captured.out == ""
    return complaints[0]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("good.py", "--device", "cpu", "--budget", "0"), "over 0"),
        (("good.py", "--device", "cpu", "--model", "deepseek:v4"), "DEEPSEEK_API_KEY"),
        (("good.py", "--device", "cpu", "--model", "replay:none.jsonl"), "none.jsonl"),
        (("good.py", "--device", "cpu", "--model", "dir:a", "--strategy", "tune"), "hybrid"),
        (("good.py", "--device", "cpu", "--strategy", "hybrid"), "--model"),
        (("good.py", "--device", "cpu", "--language", "cuda"), "--model"),
        (("good.py", "--device", "cpu", "--start", "kernel.txt"), ".cu"),
        (("good.py", "--device", "cpu", "--model", "dir:a", "--max-usd", "0"), "max_usd"),
        (("good.py", "--device", "cpu", "--model", "dir:a", "--sees", "all"), "performance"),
        (("good.py", "--device", "cpu", "--model", "dir:a", "--examples", "gone"), "gone"),
        (("good.py", "--device", "cpu", "--examples", "."), "--model"),
        (("good.py", "--device", "cpu", "--sees", "nothing"), "--sees: the built-in"),
        (("good.py", "--device", "cpu", "--max-usd", "3"), "--max-usd: the built-in"),
        (("good.py", "--device", "cpu", "--max-calls", "3"), "--max-calls: the built-in"),
        (("good.py", "--device", "cpu", "--judge", "moon"), "ssh://"),
        (("good.py", "--device", "cpu", "--verdicts", "v"), "--judge bundle"),
        (("good.py", "--device", "cpu", "--budget", "abc"), "'abc'"),
        (("good.py", "--device", "cpu", "--budget", "-5m"), "duration"),
        (("good.py", "--device", "cpu", "--budget", ""), "duration"),
        (("good.py", "--device", "cpu", "--max-candidates", "0"), "max_candidates"),
        (("good.py", "--device", "cpu", "--max-candidates", "many"), "--max-candidates"),
        (("good.py", "--device", "tpu"), "auto, cuda or cpu"),
        (("good.py", "--device", "cpu", "--model", "nowhere:r1"), "no model preset"),
        (("good.py", "--device", "cpu", "--strategy", "luck"), "luck"),
        (("good.py", "--device", "cpu", "--min-isolation", "T9"), "min_isolation"),
        (("good.py", "--device", "cpu", "--seed", "-1"), "seed"),
        (("good.py", "--device", "cpu", "--parallel", "0"), "parallel"),
        (("good.py", "--device", "cpu", "--set", "S"), "NAME=VALUE"),
        (("good.py", "--device", "cpu", "--set", "Z=1"), "no constant Z"),
        (("good.py", "--device", "cpu", "--set", "S=8", "--set", "S=9"), "twice"),
        (("good.py", "--device", "cpu", "--out", "good.py"), "is a file"),
        (("good.py", "--device", "cpu", "--out", "."), "no hotloop run"),
        (("missing.py", "--device", "cpu"), "no such file"),
        (("nothing.py", "--device", "cpu"), "expected a problem"),
        (("broken.py", "--device", "cpu"), "line 1"),
        (("binary.py", "--device", "cpu"), "UTF-8"),
        (("kernelbench/1/19", "--device", "cpu"), "--data"),
        (("kernelbench/1/19", "--device", "cpu", "--data", "nowhere"), "nowhere"),
        (("good.py", "--device", "cpu", "--data", "nowhere"), "--data: good.py is a file"),
        (("good.py", "--no-such-option"), "--no-such-option"),
        ((), "PROBLEM"),
    ],
)
def test_optimize_refuses_bad_input_with_2(folder, capsys, args, word):
    before = set(folder.iterdir())
    assert word in refuse(capsys, 2, "optimize", *args)
    left = set(folder.iterdir()) - before
    assert left == set()


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("good.py", "missing.py"), "missing.py"),
        (("good.py", "kernel.txt"), ".py"),
        (("good.py", "binary.py"), "UTF-8"),
        (("good.py", "kernel.py", "--tier", "slow"), "fast or final"),
        (("good.py", "kernel.py", "--tier", "final"), "needs a GPU"),
        (("nothing.py", "kernel.py"), "expected a problem"),
        (("good.py", "kernel.py", "--data", "nowhere"), "--data: good.py is a file"),
        (("good.py",), "CANDIDATE"),
    ],
)
def test_verify_refuses_bad_input_with_2(folder, capsys, args, word):
    assert word in refuse(capsys, 2, "verify", *args, "--device", "cpu")


def test_a_data_set_is_refused_for_a_file_unless_the_environment_names_it(folder, monkeypatch):
    data = Path("nowhere")
    for problem in ("kernelbench/1/19", "missing.py"):  # what is missing is told of as such
        assert options.data_of(problem, data) == data
    for environment in (None, "elsewhere"):
        if environment is not None:
            monkeypatch.setenv(options.DATA_VARIABLE, environment)
        with pytest.raises(ConfigError, match="drop --data"):
            options.data_of("good.py", data)
    monkeypatch.setenv(options.DATA_VARIABLE, "nowhere/")
    assert options.data_of("good.py", data) is None, "it is there for other commands"
    assert options.data_of("kernelbench/1/19", data) == data


@pytest.mark.parametrize("command", ["audit", "prompt"])
def test_what_only_loads_a_file_takes_no_data_set_either(folder, capsys, command):
    told = refuse(capsys, 2, command, "good.py", "--device", "cpu", "--data", "nowhere")
    assert told.startswith("hotloop: --data: good.py is a file")


def test_an_unknown_command_and_none_at_all_are_refused(capsys):
    assert "no-such" in refuse(capsys, 2, "no-such")
    assert "command" in refuse(capsys, 2)


def test_a_folder_without_a_run_cannot_be_shown(folder, capsys):
    assert "no hotloop run" in refuse(capsys, 2, "show", ".")
    assert "no hotloop run" in refuse(capsys, 2, "show", "missing")


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU here, so asking for one is no error")
def test_a_gpu_that_is_not_there_is_the_machines_fault(folder, capsys):
    assert "expected an NVIDIA GPU" in refuse(capsys, 3, "optimize", "good.py", "--device", "cuda")
    line = refuse(capsys, 3, "verify", "good.py", "kernel.py", "--device", "cuda")
    assert "hotloop doctor" in line


def begun(problem, out):
    """Begin a run as `optimize` does, without running it."""
    from hotloop.plan import plan_search
    from hotloop.store.sqlite import SqliteStore

    plan = plan_search(problem, device="cpu", out=out)
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)


def test_a_folder_of_another_run_is_refused(folder, capsys):
    begun("good.py", "out")
    line = refuse(capsys, 2, "optimize", "other.py", "--device", "cpu", "--out", "out")
    assert "another --out" in line


def test_a_folder_of_a_newer_version_is_refused(folder, capsys):
    begun("good.py", "out")
    with sqlite3.connect("out/journal.sqlite") as journal:
        journal.execute("PRAGMA user_version = 999")
    refuse(capsys, 2, "optimize", "good.py", "--device", "cpu", "--out", "out")
    refuse(capsys, 2, "show", "out")


def test_a_folder_that_is_held_is_the_machines_fault(folder, capsys):
    begun("good.py", "out")
    with open("out/lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        line = refuse(capsys, 3, "optimize", "good.py", "--device", "cpu", "--out", "out")
    assert "held by" in line


def test_debug_shows_the_traceback_as_well(folder, capsys):
    assert main(["--debug", "optimize", "good.py", "--device", "cpu", "--budget", "0"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_a_real_process_ends_with_the_code_and_one_line(folder):
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "hotloop",
            "optimize",
            "good.py",
            "--device",
            "cpu",
            "--budget",
            "abc",
            "--json",
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
        timeout=60,
    )
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("hotloop: budget")


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["optimize", "--help"]])
def test_help_and_version_are_done_with_0(args, capsys):
    assert main(args) == 0
    assert "hotloop" in capsys.readouterr().out


@pytest.mark.parametrize(("out", "word"), [("kernel.py", "is a file"), (".", "no hotloop run")])
def test_a_folder_that_cannot_be_a_run_is_the_only_line(folder, capsys, out, word):
    assert word in refuse(capsys, 2, "optimize", "good.py", "--device", "cpu", "--out", out)
    main(["optimize", "good.py", "--device", "cpu", "--out", out])
    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_kernel_is_the_only_line(folder, capsys):
    assert main(["verify", "good.py", "missing.py", "--device", "cpu"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_output_that_cannot_be_written_is_the_machines_fault(folder):
    begun("good.py", "out")
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "hotloop", "show", "out"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
    assert ran.returncode == 3
    assert ran.stderr.count("\n") == 1
    assert "stdout" in ran.stderr


def test_a_path_that_cannot_hold_a_run_is_the_users_fault(folder, capsys):
    run = ("optimize", "good.py", "--device", "cpu", "--out", "good.py/x/y")
    assert "good.py is a file and can hold no folder" in refuse(capsys, 2, *run)
    told = refuse(capsys, 2, "optimize", str(folder), "--device", "cpu")
    assert "is a folder; expected a problem file in it" in told
    told = refuse(capsys, 2, "prompt", "runs/nothing", "--device", "cpu")
    assert "or the folder of a run" in told


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errno.EROFS, 2, "--out x.html cannot be written (Read-only file system)"),
        (errno.EACCES, 2, "--out x.html cannot be written (Permission denied)"),
        (errno.ENOSPC, 3, "--out x.html: the disk is full"),
    ],
)
def test_what_cannot_be_written_is_named_with_the_cause(error, code, said):
    with pytest.raises(HotloopError) as caught, writing(Path("x.html")):
        raise OSError(error, os.strerror(error), "/elsewhere/.x.html.tmp1")
    assert str(caught.value).startswith(said)
    assert caught.value.exit_code == code


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (".", "--out . is a folder; name a file in it, like calls.jsonl"),
        ("nowhere/x", "--out nowhere/x: there is no folder nowhere; make it first"),
        ("good.py/x", "--out good.py/x: good.py is a file; name another folder"),
    ],
)
def test_a_place_where_no_file_can_be_is_refused_before_any_work(folder, out, said):
    with pytest.raises(ConfigError) as caught:
        check_file(Path(out), like="calls.jsonl")
    assert str(caught.value) == said
    for honest in ("x", "kernel.txt", str(folder / "x")):
        check_file(Path(honest), like="calls.jsonl")


def test_a_file_that_nobody_foresaw_is_named_and_is_not_stdout(monkeypatch, capsys):
    def refused(*args, **options):
        raise PermissionError(errno.EACCES, "Permission denied", "/some/file")

    monkeypatch.setattr(main_module, "app", refused)
    monkeypatch.setattr(main_module, "_abandon_stdout", lambda: None)
    assert main(["doctor"]) == 3
    told = capsys.readouterr().err
    assert "/some/file: Permission denied" in told
    assert "stdout" not in told


def test_a_command_that_is_stopped_says_so(folder, monkeypatch, capsys):
    def pressed(request):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["hotloop.cli.audit"], "find_device", pressed)
    told = refuse(capsys, 130, "audit", "good.py", "--device", "cpu")
    assert told == "hotloop: stopped; the same command goes on from here"


@pytest.mark.parametrize("words", [("--short",), ("--tier", "slow"), ("--tier", "final")])
def test_a_wrong_tier_is_said_before_anything_is_loaded(folder, capsys, words):
    assert main(["verify", "good.py", "kernel.py", "--device", "cpu", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"hotloop: {words[0]}")
