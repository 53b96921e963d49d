"""A wrong kernel for a Model is told smaller sizes at which it is right, if it follows sizes."""

import dataclasses
from collections.abc import Iterator

import pytest
import scaled_rows
from scaled_rows import triton, verdict

from hotloop.core.problem import Policy, Problem, Role, Workload
from hotloop.core.verdict import Status
from hotloop.verify import LocalVerifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

LOAD = "    x = tl.load(x_ptr + i, mask=inside)"
FIRST_BLOCK = (LOAD, "    x = tl.load(x_ptr + i % 256, mask=inside)")
"""Right for 5 rows of 48 at most."""
NOISE = (LOAD, LOAD + " + tl.sin(i * 12.9898)")
WRITTEN_IN = (
    "scale_kernel[grid](x, self.scale, y, x.numel()",
    "assert x.numel() == 32 * 48\n        scale_kernel[grid](x, self.scale, y, 32 * 48",
)
"""Nothing is said by a kernel that takes no other size."""


def judge_of(problem: Problem) -> Iterator[LocalVerifier]:
    judge = LocalVerifier("cpu", call_timeout_s=30.0)
    try:
        judge.load(problem)
        yield judge
    finally:
        judge.close()


@pytest.fixture(scope="module")
def problem(scaled_rows_file) -> Problem:
    return scaled_rows.problem(scaled_rows_file, "cpu", rows=32, columns=48)


@pytest.fixture(scope="module")
def nominal(problem: Problem) -> Iterator[LocalVerifier]:
    yield from judge_of(problem)


@pytest.fixture(scope="module")
def generic(problem: Problem) -> Iterator[LocalVerifier]:
    """A judge of the same problem at any size, with 8 rows held out."""
    policy = Policy(shape_scope="generic")
    hidden = Workload(name="held_out/0", role=Role.HELD_OUT, settings={"ROWS": 8})
    workloads = (*problem.workloads, hidden)
    yield from judge_of(dataclasses.replace(problem, policy=policy, workloads=workloads))


def smaller(judge: LocalVerifier, *changes: tuple[str, str]) -> dict | None:
    found = verdict(judge, triton(*changes))
    assert found.status is Status.INCORRECT_NUMERICAL, found.message
    assert found.evidence is not None
    return found.evidence.details.get("smaller")


def test_sizes_are_halved_until_it_is_right(nominal: LocalVerifier) -> None:
    assert smaller(nominal, FIRST_BLOCK) == {"passes": {"ROWS": 4}, "fails": {"ROWS": 8}}
    assert verdict(nominal, triton()).status is Status.PASSED


def test_where_only_the_nominal_sizes_count_a_smaller_failure_proves_nothing(
    nominal: LocalVerifier,
) -> None:
    assert smaller(nominal, NOISE) is None
    assert smaller(nominal, NOISE, WRITTEN_IN) is None


def test_where_any_size_counts_a_smaller_failure_is_told_and_hidden_sizes_are_left_out(
    generic: LocalVerifier,
) -> None:
    assert smaller(generic, NOISE) == {"fails": {"ROWS": 16}}
    assert smaller(generic, FIRST_BLOCK) == {"fails": {"ROWS": 16}}
    assert smaller(generic, NOISE, WRITTEN_IN) is None
    assert verdict(generic, triton()).status is Status.PASSED
