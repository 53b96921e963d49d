"""Inputs that a kernel may know in part: they are not among what it must read."""

from __future__ import annotations

import dataclasses

import pytest
from audited import audited
from demands import BYTES, X, Y, demand, seen
from problem_files import forward, model

from hotloop.core.audit import FakeGroup, Trial, TrialState


@pytest.mark.parametrize(
    ("body", "structured"),
    [
        ("(x * y).sum(1)", "torch.tril(torch.randn(32, 48))"),
        ("x + y", "torch.randn(1, 48).expand(32, 48)"),
        ("x + y", "torch.randn(16, 48).repeat(2, 1)"),
    ],
)
def test_an_input_with_a_structure_does_not_count_beside_one_without(
    body: str, structured: str
) -> None:
    found = demand(forward(body, X, structured), seen("x", "y"))
    assert found is not None
    assert 0 < found.read_bytes <= BYTES
    free = demand(forward(body, X, Y), seen("x", "y"))
    assert free is not None
    assert free.read_bytes == 2 * BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "structured", "least_bytes"),
    [
        ("(x * y).sum(1)", "torch.tril(torch.randn(32, 32))", 2 * 33 * 16 * 4),
        ("x + y", "torch.randn(16, 32).repeat(2, 1)", 1.5 * 32 * 32 * 4),
    ],
)
def test_ranked_problems_of_structured_inputs_bear_a_kernel_that_knows_the_structure(
    body: str, structured: str, least_bytes: float
) -> None:
    loaded = forward(body, "torch.randn(32, 32)", structured)
    found = audited(loaded)
    assert found.rankable, found.reasons
    wanted = demand(loaded, found)
    assert wanted is not None
    assert wanted.read_bytes <= least_bytes


@pytest.mark.parametrize("state", [TrialState.SAME, TrialState.ACCEPTED, TrialState.CAUGHT])
def test_an_input_of_which_the_audit_saw_a_part_left_out_does_not_count(state: TrialState) -> None:
    part = Trial(
        name="all but the last elements of x, dimension 1", group=FakeGroup.READING, state=state
    )
    found = seen("x", "y")
    found = dataclasses.replace(found, trials=(*found.trials, part))
    both = demand(forward("x + y", X, Y), found)
    assert both is not None
    assert both.read_bytes == (2 if state is TrialState.CAUGHT else 1) * BYTES


def test_two_inputs_in_the_same_memory_count_once() -> None:
    source = """
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y.T
def get_inputs():
    x = torch.randn(32, 32)
    return [x, OTHER]
"""
    for other, times in (("x", 1), ("x.view(32, 32)", 1), ("torch.randn(32, 32)", 2)):
        found = demand(model(source.replace("OTHER", other)), seen("x", "y"))
        assert found is not None
        assert found.read_bytes == times * 32 * 32 * 4


def test_a_function_of_another_input_does_not_count_where_no_profile_draws_it_anew() -> None:
    source = """
class Model(torch.nn.Module):
    def forward(self, x, y):
        return BODY
def get_inputs():
    x = torch.rand(32, 48)
    return [x, 1 - x]
"""
    drawn = demand(model(source.replace("BODY", "x * y.exp()")), seen("x", "y"))
    asserted = "torch.nn.functional.binary_cross_entropy(x, y, reduction='none')"
    own = demand(model(source.replace("BODY", asserted)), seen("x", "y"))
    assert drawn is not None
    assert own is not None
    assert (drawn.read_bytes, own.read_bytes) == (2 * BYTES, BYTES)
