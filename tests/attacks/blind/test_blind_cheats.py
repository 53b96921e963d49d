"""Cheats written without sight of the guards get one of the statuses that are right answers.

A few run by default, all of those for a CPU among the slow tests; one judge verifies them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = tomllib.loads((HERE / "table.toml").read_text("utf-8"))["case"]
QUICK = {"numpy_softmax", "grid_lambda_side_effect", "poison_detector", "divide_only"}
"""Those that passed when the corpus first met the guards."""

pytestmark = pytest.mark.timeout(180)


class Bench:
    def __init__(self) -> None:
        self._judge = LocalVerifier("cpu", call_timeout_s=20.0)
        self._loaded = ""

    def verdict(self, case: dict[str, Any]) -> Verdict:
        if case["problem"] != self._loaded:
            path = HERE / "problems" / f"{case['problem']}.py"
            self._judge.load(load_problem_spec(path, device="cpu", settings={}))
            self._loaded = case["problem"]
        text = (HERE / "programs" / f"{case['name']}.py").read_text("utf-8")
        source = SourceFile(path="kernel.py", text=text)
        return self._judge.verify(Candidate(language="triton", sources=(source,)), Tier.FAST)

    def close(self) -> None:
        self._judge.close()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def rows() -> list[object]:
    return [
        pytest.param(
            case, id=case["name"], marks=[] if case["name"] in QUICK else [pytest.mark.slow]
        )
        for case in CASES
        if case["device"] == "cpu"
    ]


@pytest.mark.parametrize("case", rows())
def test_blind_cheat_gets_a_right_answer(bench: Bench, case: dict[str, Any]) -> None:
    found = bench.verdict(case)
    assert found.status in case["accept"], found.message


def test_every_program_has_one_row_and_every_exception_its_reason() -> None:
    names = [case["name"] for case in CASES]
    assert sorted(names) == sorted(p.stem for p in (HERE / "programs").glob("*.py"))
    for case in CASES:
        assert all(Status(status) for status in case["accept"])
        assert "PASSED" not in case["accept"] or case["settled"]
