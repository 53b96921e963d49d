"""Running the tools: a stand-in for compute-sanitizer writes logs, hangs, fails, or is absent."""

import json
import os
import pathlib
import sys
import time

import pytest
import sanitizer_logs as logs

from hotloop import sandbox
from hotloop.worker.sanitizer_tools import (
    FOUND_CODE,
    NOT_INSTALLED,
    TOOLS,
    Watch,
    find_sanitizer,
    tools_for,
)

TOOL = """#!{python}
import json, pathlib, subprocess, sys, time
argv = sys.argv[1:]
tool, log = argv[argv.index("--tool") + 1], pathlib.Path(argv[argv.index("--log-file") + 1])
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(json.dumps(argv) + "\\n")
plan = json.loads((here / "plan").read_text()).get(tool, {{}})
print(plan.get("prints", ""), flush=True)
log.write_text(plan.get("log", "========= ERROR SUMMARY: 0 errors\\n"))
if plan.get("hangs"):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    (here / "child").write_text(str(child.pid))
    time.sleep(100)
sys.exit(plan.get("code", 0))
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Put a tool on PATH and return what sets its behaviour, by name of the tool."""
    home = tmp_path / "bin"
    home.mkdir()
    script = home / "compute-sanitizer"
    script.write_text(TOOL.format(python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")

    def write(**behaviour):
        (home / "plan").write_text(json.dumps(behaviour))
        return home

    return write


@pytest.fixture
def watch(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    cage = sandbox.CageSpec(tier=sandbox.Tier.NONE, work_dir=str(folder))
    return Watch({"recording": "{}"}, frozenset({"add", "sum"}), folder, dict(os.environ), cage)


def is_running(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
    return "State:\tZ" not in status


def calls(home):
    return [json.loads(line) for line in (home / "calls").read_text().splitlines()]


def test_all_tools_run_in_turn_and_find_nothing(plan, watch):
    home = plan(racecheck={"log": logs.CLEAN_RACES})
    outcome = watch.run(TOOLS)
    assert (outcome.ran, outcome.skipped, outcome.tool) == (TOOLS, {}, None)
    for argv, tool in zip(calls(home), TOOLS, strict=True):
        assert argv[argv.index("--tool") + 1] == tool
        assert argv[argv.index("--log-file") + 1] == str(watch.folder / "sanitizer.log")
    scratch = json.loads((watch.folder / "message.json").read_text())["zero_scratch"]
    assert scratch is True


def test_a_finding_ends_it_and_no_other_tool_is_started(plan, watch):
    home = plan(initcheck={"log": logs.UNINITIALISED, "code": FOUND_CODE})
    outcome = watch.run(TOOLS)
    assert outcome.tool == "initcheck"
    assert [f.kind for f in outcome.findings] == ["uninitialised_read"]
    assert outcome.ran == ("memcheck",)
    assert len(calls(home)) == 2


@pytest.mark.parametrize("log", [logs.OUT_OF_BOUNDS_NEW, logs.RACE_NEW, logs.BARRIER])
def test_what_the_watched_process_prints_condemns_nobody(plan, watch, log):
    plan(memcheck={"prints": log})
    outcome = watch.run(("memcheck",))
    assert (outcome.ran, outcome.findings) == (("memcheck",), ())


def test_what_the_watched_process_prints_acquits_nobody(plan, watch):
    plan(
        memcheck={"prints": logs.CLEAN, "log": logs.OUT_OF_BOUNDS_NEW, "code": FOUND_CODE},
        initcheck={"prints": logs.CLEAN, "log": "", "code": 0},
    )
    assert watch.run(("memcheck",)).findings
    outcome = watch.run(("initcheck",))
    assert outcome.ran == ()
    assert "no answer (exit code 0)" in outcome.skipped["initcheck"]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ({"code": 1, "log": logs.NOT_STARTED}, "terminated before first instrumented"),
        ({"code": 1, "log": "", "prints": "no \x1b[31mGPU"}, 'printed "no GPU"'),
        ({"code": 1}, "no answer (exit code 1)"),
        ({"code": FOUND_CODE, "log": logs.HOST_COPY}, "Host API memory access error"),
        ({"code": FOUND_CODE, "log": logs.FOREIGN}, "Invalid __global__ read"),
    ],
)
def test_a_tool_that_does_not_work_is_named_and_the_next_one_runs(plan, watch, behaviour, words):
    plan(memcheck=behaviour)
    outcome = watch.run(("memcheck", "initcheck"))
    assert outcome.findings == ()
    assert outcome.ran == ("initcheck",)
    assert words in outcome.skipped["memcheck"]


def test_a_tool_that_hangs_is_ended_with_its_children(plan, watch, monkeypatch):
    monkeypatch.setattr("hotloop.worker.sanitizer_tools.LEAST_S", 0.8)
    home = plan(memcheck={"hangs": True, "log": ""})
    start = time.monotonic()
    outcome = watch.run(("memcheck", "initcheck"), all_s=1.5, tool_s=1.0)
    assert time.monotonic() - start < 10
    assert outcome.skipped["memcheck"] == "not done within 1 s"
    assert "were over" in outcome.skipped["initcheck"]
    child, end = int((home / "child").read_text()), time.monotonic() + 5
    while is_running(child) and time.monotonic() < end:  # it was killed; nobody waits for orphans
        time.sleep(0.02)
    assert not is_running(child)


@pytest.mark.slow  # a stand-in that starts late must still have written
def test_what_a_tool_found_before_its_time_was_over_counts(plan, watch):
    plan(memcheck={"hangs": True, "log": logs.OUT_OF_BOUNDS_NEW})
    assert watch.run(("memcheck",), tool_s=6.0).findings[0].kernel == "add"


def test_a_link_where_the_log_should_be_is_not_followed(plan, watch, tmp_path):
    plan()
    (tmp_path / "mine").write_text("mine")
    (watch.folder / "sanitizer.log").symlink_to(tmp_path / "mine")
    (watch.folder / "message.json").symlink_to(tmp_path / "mine")
    assert watch.run(("memcheck",)).ran == ("memcheck",)
    assert (tmp_path / "mine").read_text() == "mine"


def test_without_the_tool_every_check_is_named(watch, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("hotloop.worker.sanitizer_tools.TOOLKIT_FOLDERS", ())
    monkeypatch.setattr("hotloop.worker.sanitizer_tools._INSTALLED", str(tmp_path / "none"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    assert find_sanitizer() is None
    assert watch.run(TOOLS).skipped == dict.fromkeys(TOOLS, NOT_INSTALLED)


def test_tools_that_only_tell_of_a_compiler_are_left_out_with_a_reason():
    assert tools_for("cuda") == (TOOLS, {})
    tools, why = tools_for("triton")
    assert tools == ("memcheck", "initcheck")
    assert set(why) == {"racecheck", "synccheck"}
    assert "the compiler of triton" in why["racecheck"]
    tools, why = tools_for("gluon")
    assert tools == ("memcheck", "initcheck")
    assert "TMA" in why["racecheck"]
