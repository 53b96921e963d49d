"""Whole commands in real processes, on a machine taken to have no GPU."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.store.reader import RunReader

CASES = Path(__file__).parents[1] / "report" / "cases"
ENVIRONMENT = os.environ | {"NO_COLOR": "1", "CUDA_VISIBLE_DEVICES": ""}
SMALL = ("--device", "cpu", "--set", "S=64,D=32")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def start(*args, cwd):
    return subprocess.Popen(
        [sys.executable, "-m", "hotloop", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        cwd=cwd,
    )


def run(*args, cwd):
    process = start(*args, cwd=cwd)
    out, err = process.communicate(timeout=110)
    return process.returncode, out, err


def test_optimize_finds_a_kernel_that_verify_and_its_own_test_accept(tmp_path):
    problem = CASES / "relative.py"
    search = ("optimize", problem, *SMALL, "--budget", "60s", "--max-candidates", "2", "--json")
    code, out, err = run(*search, cwd=tmp_path)
    assert code == 0, err
    record = json.loads(out)
    assert record["passed"] is True
    assert record["verdict"]["performance"] is None
    assert err.splitlines()[0].startswith("generator: builtin")
    best = tmp_path / record["best_folder"]

    code, out, err = run("verify", problem, best / "kernel.py", *SMALL, "--json", cwd=tmp_path)
    assert code == 0, err
    verdict = json.loads(out)
    assert verdict["status"] == "PASSED"
    assert verdict["candidate_id"] == record["verdict"]["candidate_id"]

    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py"],
        cwd=best,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "4 passed" in tested.stdout, tested.stdout

    (journal,) = tmp_path.rglob("journal.sqlite")
    judged = judged_in(journal.parent)
    code, out, _ = run(*search, cwd=tmp_path)
    assert (code, json.loads(out)["best_attempt_id"]) == (0, record["best_attempt_id"])
    assert judged_in(journal.parent) == judged > 0, "a finished run is not run again"


def judged_in(folder):
    with RunReader(folder) as reader:
        return len(reader.events_of(("concluded", "final")))


def test_verify_refuses_a_wrong_kernel_with_1(tmp_path):
    right = (CASES / "relative_kernel.py").read_text()
    (tmp_path / "wrong.py").write_text(right.replace("score += (i - j)", "score += 0 * (i - j)"))
    code, out, err = run(
        "verify", CASES / "relative.py", "wrong.py", "--device", "cpu", "--json", cwd=tmp_path
    )
    assert code == 1, err
    assert json.loads(out)["status"] == "INCORRECT_NUMERICAL"


def test_verify_takes_an_honest_kernel(tmp_path):
    honest = CASES / "relative_kernel.py"
    code, out, err = run("verify", CASES / "relative.py", honest, "--device", "cpu", cwd=tmp_path)
    assert code == 0, err
    assert out.startswith("PASSED")
    assert " ms" not in out


def test_the_first_interrupt_drains_and_the_same_command_goes_on(tmp_path):
    search = ("optimize", CASES / "relative.py", *SMALL, "--budget", "10m", "--out", "run")
    process = start(*search, cwd=tmp_path)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("attempt 1 "):
            process.send_signal(signal.SIGINT)
            break
    _, rest = process.communicate(timeout=110)
    assert process.returncode == 0, "".join(lines) + rest
    assert "stopped: interrupted" in rest
    code, out, err = run(
        *search[:-4], "--budget", "10m", "--max-candidates", "1", "--out", "run", cwd=tmp_path
    )
    assert code == 0, err
    assert "going on with an earlier run" in err
    assert "attempt" in out
