"""Held-out sizes are shown when nobody is left to pass them on: processes share a folder."""

from __future__ import annotations

import pytest
from affine import KERNEL, SOURCE
from scaled_rows import candidate, spoilt

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Policy, Problem, ProblemKind, Role, Workload
from hotloop.core.verdict import Stage, Status, Tier, Verdict
from hotloop.prompts.feedback import Judged, concerns_held_out, make_feedback
from hotloop.verify import LocalVerifier

pytestmark = pytest.mark.timeout(300)

NOTES = """
import os

def noted(shape):
    fd = os.open("seen.txt", os.O_CREAT | os.O_RDWR)
    text = os.read(fd, 10000).decode()
    os.write(fd, repr(shape).encode())
    os.close(fd)
    return text

class ModelNew"""
SECRET = (7, 31)
TELLS = f'if "{SECRET}" in seen and x.shape != {SECRET}: raise ValueError(seen)'
WORKLOADS = (
    Workload(name="nominal", role=Role.NOMINAL),
    Workload(name="secret", role=Role.HELD_OUT, settings={"ROWS": 7, "COLUMNS": 31}),
    Workload(name="shown", role=Role.BOUNDARY, settings={"ROWS": 9, "COLUMNS": 33}),
)
PROBLEM = Problem(
    name="m",
    kind=ProblemKind.KERNELBENCH,
    source=SOURCE,
    policy=Policy(shape_scope="generic"),
    workloads=WORKLOADS,
)


def kernel(then: str) -> Candidate:
    """Return a right kernel that keeps the sizes that it met in a file."""
    noting = f"seen = noted(tuple(x.shape))\n        {then}\n        return y"
    return candidate(spoilt(KERNEL, ("\nclass ModelNew", NOTES), ("return y", noting)), "kernel.py")


def judged(device: str, then: str) -> Verdict:
    judge = LocalVerifier(device, call_timeout_s=30.0)
    try:
        judge.load(PROBLEM)
        return judge.verify(kernel(then), Tier.FINAL)
    finally:
        judge.close()


def roles(verdict: Verdict) -> list[Role]:
    assert verdict.correctness is not None
    listed = {w.name: w.role for w in WORKLOADS}
    names = dict.fromkeys(case.workload for case in verdict.correctness.cases)
    return [listed.get(name) or Role(name.split("/")[0]) for name in names]


@pytest.mark.slow
def test_what_is_held_out_comes_last_wherever_it_is_listed_and_nobody_else_hears_of_it() -> None:
    verdict = judged("cpu", TELLS)
    assert verdict.status is Status.RUNTIME_ERROR
    assert verdict.evidence is not None
    assert str(SECRET) in verdict.message  # the notes do pass: to another hidden one
    assert verdict.evidence.details["workload"] == {"role": "held_out"}
    assert concerns_held_out(verdict, PROBLEM)
    feedback = make_feedback(Judged(verdict=verdict, candidate=None, problem=PROBLEM))
    assert not any(letter.isdigit() for letter in feedback.text)


@pytest.mark.slow
def test_a_kernel_that_keeps_notes_and_tells_nothing_passes() -> None:
    verdict = judged("cpu", "")
    assert (verdict.status, verdict.stage) == (Status.PASSED, Stage.CORRECTNESS), verdict.message
    order = roles(verdict)
    assert order[0] is Role.NOMINAL
    hidden = order.index(Role.HELD_OUT)
    assert Role.BOUNDARY in order[:hidden]
    assert set(order[hidden:]) == {Role.HELD_OUT}


@pytest.mark.gpu
def test_nothing_is_timed_once_a_hidden_size_was_shown() -> None:
    """At the problem's own sizes, which are timed, the kernel would tell."""
    own = f"if x.shape == (40, 48) and '{SECRET}' in seen: raise ValueError(seen)"
    verdict = judged("cuda", own)
    assert (verdict.status, verdict.stage) == (Status.PASSED, Stage.PERFORMANCE), verdict.message
    assert roles(verdict)[-1] is Role.HELD_OUT
    assert verdict.correctness is not None
    assert verdict.correctness.timed_calls_checked > 0
