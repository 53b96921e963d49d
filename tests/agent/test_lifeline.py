"""A run's process imports nothing of its folder, and ends when nobody holds its stdin any more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.agent.run_process import PROGRAM, launch, release, safe_environment
from hotloop.cli.mcp import _absolute, _checked
from hotloop.errors import ConfigError

EVIL = "open('imported', 'w').close()\nraise SystemExit(9)\n"


def test_a_module_of_the_folder_is_not_imported(tmp_path):
    for name in ("typer", "rich", "openai"):
        (tmp_path / f"{name}.py").write_text(EVIL)
    with open(tmp_path / "log", "wb") as log:
        process = launch([*PROGRAM, "--version"], folder=tmp_path, log=log)
    assert process.wait(60) == 0
    release(process)
    assert (tmp_path / "log").read_text().startswith("hotloop ")
    assert not (tmp_path / "imported").exists()


def test_without_its_flags_the_attack_works(tmp_path):
    (tmp_path / "typer.py").write_text(EVIL)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    words = [sys.executable, "-m", "hotloop", "--version"]
    assert subprocess.run(words, cwd=tmp_path, env=environment).returncode == 9
    assert (tmp_path / "imported").exists()


def test_the_module_path_of_a_run_has_no_folder_of_its_own():
    kept = safe_environment({"PYTHONPATH": f"src{os.pathsep}{os.pathsep}/lib/x", "A": "b"})
    path = f"{Path('src').absolute()}{os.pathsep}/lib/x"
    assert kept == {"A": "b", "PYTHONSAFEPATH": "1", "PYTHONPATH": path}
    assert safe_environment({"PYTHONPATH": os.pathsep}) == {"PYTHONSAFEPATH": "1"}


WAITS = """
import sys, time, types
from hotloop.cli import lifeline
def wait(argv):
    assert sys.stdin.read() == "", "its stdin is nowhere"
    print("waiting", flush=True)
    time.sleep(60)
sys.modules["hotloop.cli.main"] = types.SimpleNamespace(main=wait)
sys.exit(lifeline.main(["x"]))
"""
"""A command that would take long, in place of ours."""


def test_a_command_ends_when_its_stdin_does_and_not_before():
    words = [sys.executable, "-P", "-c", WAITS]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"waiting\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.stdin.close()
        assert process.wait(10) == 130


def test_a_data_set_is_named_for_every_folder():
    assert _absolute(None) is None
    assert _absolute(Path("data/kernelbench.jsonl")) == os.path.abspath("data/kernelbench.jsonl")
    assert _absolute(Path("/data")) == "/data"
    assert _absolute(Path("hub:ScalingIntelligence/KernelBench")) == (
        "hub:ScalingIntelligence/KernelBench"
    )


def test_only_endpoints_are_named_for_runs():
    spec = "openai:gpt-5@https://models.example/v1"
    assert _checked([spec]) == (spec,)
    for wrong in ("dir:answers", "replay:x", "builtin", "nonsense"):
        with pytest.raises(ConfigError):
            _checked([wrong])
