"""Memory that runs out in the judge while a candidate is alive: its fault, or the machine's."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import scaled_rows
import torch

from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Stage, Status, Tier, Verdict
from hotloop.errors import InfraError, ProblemError
from hotloop.sandbox import Tier as Isolation
from hotloop.sandbox.processes import descendants
from hotloop.worker.judge import Judge
from hotloop.worker.judge_server import public_name
from hotloop.worker.memory import DoesNotFit

pytestmark = pytest.mark.timeout(120)

LOOK = """
LOOK = lambda x: None

class Model("""


class WatchedJudge:
    """A judge on the CPU whose golden can be made to run out of memory."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        assert judge._session is not None
        self.namespace = judge._session.reference.loaded.namespace
        self.idle = self.processes()

    def processes(self) -> int:
        return sum(not p.zombie for p in descendants(os.getpid()))

    def run_out(self, when: Any) -> None:
        def look(x: torch.Tensor) -> None:
            if x.dtype is torch.float64 and when():
                raise torch.OutOfMemoryError("no room")

        self.namespace["LOOK"] = look

    def verify(self, tier: Tier) -> Verdict:
        candidate = scaled_rows.triton(columns=48)
        answer = self.judge.verify({"candidate": to_json(candidate), "tier": tier.value})
        return from_json(Verdict, answer)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedJudge]:
    path = tmp_path_factory.mktemp("problem") / "scaled_rows.py"
    text = scaled_rows.spoilt(
        scaled_rows.PROBLEM,
        ("\nclass Model(", LOOK),
        ("return x * self.scale", "LOOK(x)\n        return x * self.scale"),
    )
    path.write_text(text)
    judge = Judge(Isolation.NONE, ThreadPoolExecutor(1))
    try:
        judge.hello({"device": "cpu", "tier": "T0", "call_timeout_s": 30.0})
        problem = scaled_rows.problem(path, "cpu", rows=8, columns=48)
        judge.load({"problem": to_json(problem)})
        yield WatchedJudge(judge)
    finally:
        judge.close()


def test_an_honest_candidate_passes(watched: WatchedJudge) -> None:
    watched.run_out(lambda: False)
    assert watched.verify(Tier.FINAL).status is Status.PASSED


def test_a_golden_that_fits_once_the_candidate_is_gone_is_the_candidates_failure(
    watched: WatchedJudge,
) -> None:
    watched.run_out(lambda: watched.processes() > watched.idle)
    found = watched.verify(Tier.FINAL)
    assert (found.status, found.stage) == (Status.RUNTIME_ERROR, Stage.CORRECTNESS)
    assert found.evidence is not None
    assert found.evidence.kind == "oom_host"  # `oom_gpu` on a GPU
    assert "once its process had ended" in found.message
    assert "\n" not in found.message
    watched.run_out(lambda: False)
    assert watched.verify(Tier.FINAL).status is Status.PASSED  # the judge goes on


def test_a_golden_that_fits_no_more_is_the_machines_failure(watched: WatchedJudge) -> None:
    watched.run_out(lambda: True)
    with pytest.raises(InfraError, match="expected room for what fitted when the problem was"):
        watched.verify(Tier.FINAL)
    watched.run_out(lambda: False)
    assert watched.verify(Tier.FINAL).status is Status.PASSED


def test_what_does_not_fit_reaches_the_coordinator_as_a_problem_error() -> None:
    assert public_name(DoesNotFit("x")) == "ProblemError"
    assert public_name(ProblemError("x")) == "ProblemError"
    assert public_name(InfraError("x")) == "InfraError"
