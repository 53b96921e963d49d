"""Odd references: each kind has one behaviour and one clear line."""

import pytest
import torch
from audited import audited, trial
from problem_files import forward, model

from hotloop.core.audit import TrialState
from hotloop.errors import ProblemError
from hotloop.worker.memory import DoesNotFit
from hotloop.worker.reference import build_reference
from hotloop.worker.soundness import check_room

CAUGHT = TrialState.CAUGHT
STATEFUL = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return x * self.calls
def get_inputs():
    return [torch.rand(8, 8)]
"""
NETWORK = """
import urllib.request
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        urllib.request.urlopen("http://127.0.0.1:9/weights")
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.rand(8, 8)]
"""
COUNTER = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(1))
        self.register_buffer("table", torch.rand(16))
    def forward(self, x):
        self.steps += 1
        return x * self.table
def get_inputs():
    return [torch.rand(16, 16)]
"""


def test_a_result_that_changes_from_call_to_call_is_refused():
    with pytest.raises(ProblemError, match="another output 0 at the second call") as refused:
        build_reference(model(STATEFUL))
    assert "\n" not in str(refused.value)
    seeded = forward("x + 0.1 * torch.rand_like(x)", "torch.rand(8, 8)")
    assert build_reference(seeded).degenerate(), "it repeats under one seed"


def test_what_needs_the_network_is_refused_with_its_line():
    with pytest.raises(ProblemError, match=r"line 7.*should need no network") as refused:
        build_reference(model(NETWORK))
    assert "\n" not in str(refused.value)
    with pytest.raises(ProblemError) as other:
        build_reference(forward("x @ x", "torch.rand(4, 3)"))
    assert "network" not in str(other.value)


def test_random_numbers_inside_are_not_ranked():
    found = audited(forward("torch.nn.functional.dropout(x, 0.5)", "torch.rand(16, 16)"))
    assert found.reasons[0].startswith("forward draws random numbers")
    idle = audited(forward("torch.nn.functional.dropout(x, 0.5, False)", "torch.rand(16, 16)"))
    assert not any("random" in reason for reason in idle.reasons)


def test_nested_outputs_are_checked_one_by_one():
    body = "{'a': (x * 2, x.sum(1)), 'b': [x.argmax(1), None, x > 0.5]}"
    found = audited(forward(body, "torch.rand(16, 16)"))
    for i in range(4):
        assert trial(found, f"output {i}: zeros").state is CAUGHT
    assert found.rankable


@pytest.mark.parametrize(
    "body", ["x.argmax(1)", "x > 0.5", "(x * 3).int()", "(x * 100).to(torch.int8)"]
)
def test_integer_and_boolean_outputs_are_exact(body):
    found = audited(forward(body, "torch.rand(16, 64) * 8"))
    assert trial(found, "zeros").state is CAUGHT
    assert trial(found, "one row taken from beside it").state is CAUGHT
    assert found.rankable


def test_buffers_that_forward_writes_are_reported_and_reach_no_other_call():
    found = audited(model(COUNTER))
    assert found.rankable
    assert any("writes into its buffers (steps)" in text for text in found.findings)
    reference = build_reference(model(COUNTER))
    draw = reference.draw(1, "shipped")
    first, second = reference.eager(draw), reference.eager(draw)
    assert torch.equal(first[0], second[0])
    assert not draw.state["steps"].any(), "the draw keeps what it was drawn with"
    quiet = audited(model(COUNTER.replace("        self.steps += 1\n", "")))
    assert not any("writes into" in text for text in quiet.findings)


def test_more_than_half_of_the_memory_is_refused():
    with pytest.raises(DoesNotFit, match=r"at most half of the device's 80.0 GiB.*got 41.0 GiB"):
        check_room(41 << 30, 80 << 30, "p")
    check_room(40 << 30, 80 << 30, "p")
    with pytest.raises(ProblemError, match="get_inputs"):
        build_reference(forward("x * 2", "torch.rand(1 << 50)"))
