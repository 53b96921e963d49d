"""A case's record says which rules held; timed outputs are held to those of their values."""

import dataclasses
import math

import pytest
import torch
from problem_files import forward

from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import CaseResult, Rigour
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import TILE, gate, make_bound, timed_gate
from hotloop.worker.correctness import case_result
from hotloop.worker.reference import build_reference
from hotloop.worker.timed import telling_bounds
from hotloop.worker.view import fill_book

WEIGHT = "self.w = torch.nn.Parameter(torch.randn(64, 48))"
BODY = "(x @ self.w, torch.softmax(x @ self.w, 1), (x @ self.w).argmax(1))"


def records(book, change=lambda output: output):
    """Return the records of eager's outputs, as a stage keeps them, by profile and output."""
    found = {}
    for case in book:
        draw, goldens = book.materialise(case)
        for i, output in enumerate(book.reference.eager(draw)):
            bound = case.bounds[i]
            result = gate(change(output), goldens[i], bound)
            found[case.profile, i] = case_result(case, i, bound, result)
    return found


@pytest.fixture(scope="module")
def book():
    made = CaseBook(build_reference(forward(BODY, "torch.rand(32, 64)", init=WEIGHT)), "nominal")
    fill_book(made)
    return made


def test_a_case_says_that_it_was_looked_at_for_nan_and_inf_only(book):
    found = records(book)
    assert found["far", 0].rigour is Rigour.FULL
    assert found["far", 1].rigour is Rigour.GROSS
    others = {record.rigour for (_, output), record in found.items() if output != 1}
    assert others == {Rigour.FULL}
    assert {found[profile, 1].rigour for profile in ("normal", "large")} == {Rigour.FULL}


def test_a_failure_says_it_too(book):
    record = records(book, lambda t: torch.full_like(t, math.nan) if t.is_floating_point() else t)
    assert (record["far", 1].passed, record["far", 1].rigour) == (False, Rigour.GROSS)
    assert (record["normal", 1].passed, record["normal", 1].rigour) == (False, Rigour.FULL)


def test_wider_bounds_are_recorded_and_equality_is_all_that_can_be_asked(book):
    case = next(case for case in book if case.profile == "far")
    bounds = case.bounds
    before = [bound.rigour for bound in bounds]
    try:
        for bound in bounds:
            bound.rigour = Rigour.ROUGH
        found = [record for (name, _), record in sorted(records(book).items()) if name == "far"]
    finally:
        for bound, rigour in zip(bounds, before, strict=True):
            bound.rigour = rigour
    assert [bound.exact for bound in bounds] == [False, False, True]
    assert [record.rigour for record in found] == [Rigour.ROUGH, Rigour.ROUGH, Rigour.FULL]


@pytest.mark.parametrize("rigour", [*Rigour, None])
def test_a_record_travels_with_its_rules(book, rigour):
    known = to_json(records(book)["normal", 0]) | {"rigour": rigour and rigour.value}
    assert from_json(CaseResult, known).rigour is rigour
    assert to_json(from_json(CaseResult, known)) == known


def test_a_record_without_rules_still_reads(book):
    old = to_json(records(book)["normal", 0])
    del old["rigour"]
    assert from_json(CaseResult, old).rigour is None
    with pytest.raises(ValueError, match="some"):
        from_json(CaseResult, old | {"rigour": "some"})


SHIFT = 1e10
"""What float32 cannot add to ordinary values: then far ones are all that is left."""


@pytest.fixture(scope="module")
def timed_far():
    body = f"((x + {SHIFT}) - {SHIFT}, torch.softmax(x @ self.w, 1))"
    reference = build_reference(forward(body, "torch.rand(32, 64)", init=WEIGHT))
    assert reference.timed_profile == "far"
    made = CaseBook(reference, "timed")
    made.add_draw(reference.draw(5, reference.timed_profile, timed=True), cache_bytes=1 << 20)
    return made


def test_calls_are_timed_on_far_values_where_no_others_are_left(timed_far):
    bounds = telling_bounds(timed_far.cases[0])
    assert [bound.rigour for bound in bounds] == [Rigour.FULL, Rigour.GROSS]
    draw = timed_far.draw_of(timed_far.cases[0])
    timed_far.reference.redraw_inputs(draw, 6)
    shifted, chances = timed_far.reference.eager(draw)
    assert timed_gate(shifted, shifted, bounds[0])
    assert not timed_gate(shifted * 1.01, shifted, bounds[0])
    other = chances * 0.99  # no more is asked of it here than of the calls that are not timed
    assert timed_gate(other, chances, bounds[1])
    assert not timed_gate(chances.flip(0), chances, bounds[1])
    other[0, 0] = math.nan
    assert not timed_gate(other, chances, bounds[1])


def test_values_on_which_nothing_shows_are_not_timed(book):
    case = next(case for case in book if case.profile == "far")
    alone = dataclasses.replace(case, bounds=case.bounds[1:2])
    with pytest.raises(ValueError, match="got 'far': its outputs are looked at for gross"):
        telling_bounds(alone)
    assert telling_bounds(case) == case.bounds
    both = dataclasses.replace(case, bounds=case.bounds[1:])  # the other is compared exactly
    assert telling_bounds(both) == both.bounds


@pytest.mark.parametrize("rigour", [Rigour.FULL, Rigour.ROUGH, Rigour.GROSS])
def test_a_timed_output_is_held_to_the_rules_of_its_values(rigour):
    golden = torch.rand(4 * TILE, dtype=torch.float64, generator=torch.manual_seed(3)) + 1
    eager = (golden + 1e-4 * torch.randn(golden.shape, generator=torch.manual_seed(4))).float()
    bound = make_bound(golden, [eager], torch.float32, exact=False, rigour=rigour)
    verdicts = {}
    for name, times in (("twice", 2.0), ("six times", 6.0), ("forty times", 40.0)):
        made = (golden + times * (eager - golden)).float()
        verdicts[name] = timed_gate(made, golden.float(), bound)
    tile = eager.clone()
    tile[:TILE] += 8e-4  # a tile with eight times the error of any other
    verdicts["a tile"] = timed_gate(tile, golden.float(), bound)
    verdicts["NaN"] = timed_gate(torch.full_like(eager, math.nan), golden.float(), bound)
    passed = {name for name, is_right in verdicts.items() if is_right}
    assert (
        passed
        == {
            Rigour.FULL: {"twice"},
            Rigour.ROUGH: {"twice", "six times", "a tile"},
            Rigour.GROSS: {"twice", "six times", "forty times", "a tile"},
        }[rigour]
    )
