"""Odd references: each kind has one behaviour and one clear line."""

import pytest
import torch
from audited import audited, trial
from problem_files import forward, model

from hotloop.core.audit import Audit, TrialState
from hotloop.core.record import from_json, to_json
from hotloop.errors import ProblemError
from hotloop.worker.audit import audit, cases_of
from hotloop.worker.cases import CaseBook
from hotloop.worker.degeneracy import spread_frac
from hotloop.worker.memory import DoesNotFit
from hotloop.worker.reference import build_reference
from hotloop.worker.soundness import check_room
from hotloop.worker.view import fill_book

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


def test_infinities_of_the_references_own_are_no_part_of_the_spread():
    found = audited(forward("torch.where(x < 0.3, -float('inf'), x * 2)", "torch.rand(16, 16)"))
    assert 0.1 < found.spread_frac["output0"] < 0.5
    assert from_json(Audit, to_json(found)) == found, "it crosses to the coordinator"
    finite = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    spread = spread_frac((finite, torch.cat((finite, torch.tensor([-torch.inf, torch.nan])))))
    assert spread["output0"] == spread["output1"]
    assert spread["output0"] == pytest.approx(float(finite.std(correction=0)) / 7**0.5)
    same = torch.full((9,), 3.0, dtype=torch.float64)
    assert spread_frac((same, 0 * same, same / 0)) == {"output0": 0.0}


@pytest.mark.parametrize("fits_alone", [True, False])
def test_a_case_without_room_is_looked_at_alone_or_said_to_be_left_out(monkeypatch, fits_alone):
    reference = build_reference(forward("x * 2", "torch.rand(16, 16)"))
    book = CaseBook(reference, "nominal")
    fill_book(book)
    eager = reference.eager

    def scarce(draw):
        if book.kept_bytes() or not fits_alone:
            raise torch.OutOfMemoryError("no room")
        return eager(draw)

    monkeypatch.setattr(reference, "eager", scarce)
    found = audit(reference, cases_of([book]), key="k")
    if fits_alone:
        assert trial(found, "zeros").state is CAUGHT
    else:
        assert {t.state for t in found.trials} == {TrialState.SKIPPED}
        assert all("does not fit in memory" in t.why for t in found.trials)


def test_more_than_half_of_the_memory_is_refused():
    with pytest.raises(DoesNotFit, match=r"at most half of the device's 80.0 GiB.*got 41.0 GiB"):
        check_room(41 << 30, 80 << 30, "p")
    check_room(40 << 30, 80 << 30, "p")
    with pytest.raises(ProblemError, match="get_inputs"):
        build_reference(forward("x * 2", "torch.rand(1 << 50)"))
