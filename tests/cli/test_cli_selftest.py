"""`hotloop selftest`: one line a case, a count, JSON, and an exit code that tells."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hotloop.cli import main as command
from hotloop.cli import selftest
from hotloop.sandbox import Tier, probe
from hotloop.selftest import Outcome, Result


def result(outcome: Outcome, **more: object) -> Result:
    return Result(26, "keys in environments", "run", "T1", outcome, **more)


REFUSED = result(Outcome.REFUSED)
OPEN = result(Outcome.OPEN, found=("1 planted secrets came out",))
NOT_RUN = result(Outcome.NOT_RUN, reason="no C compiler (gcc) on PATH")


@pytest.mark.parametrize(
    ("results", "code", "line"),
    [
        ([REFUSED, NOT_RUN], 0, "1 refused, 0 OPEN, 1 not run here"),
        ([REFUSED, OPEN], 1, "1 refused, 1 OPEN, 0 not run here"),
        ([NOT_RUN], 3, "0 refused, 0 OPEN, 1 not run here"),
    ],
)
def test_exit_code_and_count(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    results: list[Result],
    code: int,
    line: str,
) -> None:
    monkeypatch.setattr(selftest, "run_selftest", lambda: results)
    assert command.main(["selftest"]) == code
    out = capsys.readouterr().out
    assert line in out
    assert ("run no candidates here" in out) is (OPEN in results)


def test_a_line_says_what_came_out_or_why_it_was_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(selftest, "run_selftest", lambda: [OPEN, NOT_RUN])
    command.main(["selftest"])
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith("OPEN ")
    assert first.endswith("keys in environments: 1 planted secrets came out")
    assert second.endswith("no C compiler (gcc) on PATH")


@pytest.mark.slow
def test_this_machine_holds() -> None:
    if probe().best_tier < Tier.EMBEDDED:
        pytest.skip("no cage on this machine")
    done = subprocess.run(
        [sys.executable, "-m", "hotloop", "selftest", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    record = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert record["ok"] is True
    assert [c for c in record["cases"] if c["outcome"] == "OPEN"] == []
    assert record["counts"]["refused"] >= 40
    assert done.stderr.rstrip().endswith("not run here")
