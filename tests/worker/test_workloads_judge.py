"""Kernels that are right at the problem's own sizes alone, as a judge and a model see them."""

import dataclasses
from collections.abc import Iterator

import pytest
from affine import KERNEL, SOURCE
from scaled_rows import candidate, spoilt

from hotloop.core.problem import Policy, Problem, ProblemKind, Role
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.prompts.feedback import Judged, concerns_held_out, make_feedback
from hotloop.verify import LocalVerifier
from hotloop.worker.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BLOCKS = "blocks = triton.cdiv(x.numel(), 128)"
WITHOUT_LAST_BLOCK = (BLOCKS, "blocks = x.numel() // 128")
WRITTEN_IN = (BLOCKS, "assert x.shape == (40, 48)\n        blocks = 15")
ALIGNED = (BLOCKS, BLOCKS + "\n        assert x.data_ptr() % 256 == 0")
"""Right wherever inputs begin as torch's allocator has them begin."""


def kernel(*changes: tuple[str, str]):
    return candidate(spoilt(KERNEL, *changes), "kernel.py")


def problem_of(scope: str) -> Problem:
    policy = Policy(shape_scope=scope)
    return Problem(name="m", kind=ProblemKind.KERNELBENCH, source=SOURCE, policy=policy)


def judge_of(problem: Problem) -> Iterator[LocalVerifier]:
    judge = LocalVerifier("cpu", call_timeout_s=30.0)
    try:
        judge.load(problem)
        yield judge
    finally:
        judge.close()


@pytest.fixture(scope="module")
def generic() -> Iterator[LocalVerifier]:
    yield from judge_of(problem_of("generic"))


@pytest.fixture(scope="module")
def nominal() -> Iterator[LocalVerifier]:
    yield from judge_of(problem_of("nominal"))


@pytest.fixture(scope="module")
def shown() -> list[tuple[int, int]]:
    """Shapes that every judge of the generic problem may tell a model of."""
    session = Session(problem_of("generic"), "cpu", isolation="T0", tracing=False)
    try:
        views = session.views(held_out=True)
        settings = [v.workload.settings for v in views if v.workload.role is Role.BOUNDARY]
        return [(int(s["ROWS"]), int(s["COLUMNS"])) for s in settings]
    finally:
        session.close()


def where(verdict: Verdict) -> dict:
    assert verdict.evidence is not None
    return dict(verdict.evidence.details["workload"])


def told(verdict: Verdict) -> str:
    problem = problem_of("generic")
    return make_feedback(Judged(verdict=verdict, candidate=kernel(), problem=problem)).text


def test_a_kernel_without_its_last_block_fails_where_any_size_must_work(generic, nominal) -> None:
    spoilt_kernel = kernel(WITHOUT_LAST_BLOCK)
    assert nominal.verify(spoilt_kernel, Tier.FAST).status is Status.PASSED
    verdict = generic.verify(spoilt_kernel, Tier.FAST)
    assert verdict.status is Status.INCORRECT_NUMERICAL
    assert where(verdict)["role"] == "boundary"
    text = told(verdict)
    assert "It failed on other sizes than the problem's own: ROWS=" in text


def test_a_kernel_that_assumes_alignment_fails_where_any_input_must_work(generic, nominal) -> None:
    aligned = kernel(ALIGNED)
    verdict = generic.verify(aligned, Tier.FAST)
    assert verdict.status is Status.RUNTIME_ERROR
    assert where(verdict)["settings"]["input_offset"].startswith("1 element")
    reported = nominal.verify(aligned, Tier.FINAL)
    assert reported.status is Status.PASSED
    assert reported.correctness is not None
    failed = [s for s in reported.correctness.other_shapes if s.status is not Status.PASSED]
    assert [s.settings.get("input_offset") for s in failed] == ["16 bytes past an aligned address"]


def test_an_honest_kernel_passes_every_shape(generic, nominal) -> None:
    for tier in Tier:
        verdict = generic.verify(kernel(), tier)
        assert verdict.status is Status.PASSED, verdict.message
        assert verdict.correctness is not None
        assert verdict.correctness.other_shapes == ()
    final = nominal.verify(kernel(), Tier.FINAL)
    assert final.correctness is not None
    assert {s.status for s in final.correctness.other_shapes} == {Status.PASSED}
    assert len(final.correctness.other_shapes) == 8


def test_sizes_written_in_are_reported_and_decide_nothing(nominal) -> None:
    verdict = nominal.verify(kernel(WRITTEN_IN), Tier.FINAL)
    assert verdict.status is Status.PASSED
    assert verdict.correctness is not None
    others = verdict.correctness.other_shapes
    assert others[0].status is Status.PASSED  # its own sizes, at another address
    assert {s.status for s in others[1:]} == {Status.RUNTIME_ERROR}
    assert all(s.settings == {} for s in others if s.role == "held_out")
    assert sum(s.role == "held_out" for s in others) >= 3
    fast = nominal.verify(kernel(WRITTEN_IN), Tier.FAST)
    assert fast.correctness is not None
    assert fast.correctness.other_shapes == ()


def test_a_kernel_for_the_shown_shapes_alone_fails_and_is_told_no_other(generic, shown) -> None:
    known = repr({(40, 48), *shown})
    memorised = kernel((BLOCKS, f"{BLOCKS} - (tuple(x.shape) not in {known})"))
    assert generic.verify(memorised, Tier.FAST).status is Status.PASSED
    verdict = generic.verify(memorised, Tier.FINAL)
    assert verdict.status is Status.INCORRECT_NUMERICAL
    assert where(verdict) == {"role": "held_out"}
    assert concerns_held_out(verdict, problem_of("generic"))
    text = told(verdict)
    assert "others that are not shown" in text
    assert not any(letter.isdigit() for letter in text)


def test_without_its_workload_a_failure_at_the_last_tier_may_be_a_hidden_one(generic) -> None:
    verdict = generic.verify(kernel(WITHOUT_LAST_BLOCK), Tier.FINAL)
    assert not concerns_held_out(verdict, problem_of("generic"))  # boundary shapes come first
    assert verdict.evidence is not None
    bare = dataclasses.replace(verdict.evidence, details={})
    unknown = dataclasses.replace(verdict, evidence=bare)
    assert concerns_held_out(unknown, problem_of("generic"))
