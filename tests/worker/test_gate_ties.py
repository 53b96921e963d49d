"""An index of an extremum may name another element that holds exactly the same value."""

import os

import pytest
import torch
from problem_files import forward, model

from hotloop.problems.kernelbench import load_kernelbench
from hotloop.worker.cases import CaseBook
from hotloop.worker.known_case import Known
from hotloop.worker.reference import build_reference
from hotloop.worker.ties import only_ties, tie_laws

DATA = os.environ.get("HOTLOOP_KERNELBENCH", "")


def tied(reference, rows=6, columns=9):
    draw = reference.draw(3, "shipped")
    values = torch.randint(0, 3, (2, rows, columns), generator=torch.Generator().manual_seed(4))
    draw.inputs = (values.float(), *draw.inputs[1:])
    return draw


def last_extremum(x, dim, find):
    flipped = find(x.flip(dim), dim)
    return x.shape[dim] - 1 - flipped


@pytest.mark.parametrize(("name", "find"), [("argmax", torch.argmax), ("argmin", torch.argmin)])
def test_another_index_of_an_exact_tie_passes_and_any_other_does_not(name, find):
    reference = build_reference(forward(f"torch.{name}(x, dim=1)", "torch.rand(2, 6, 9)"))
    draw = tied(reference)
    golden = find(draw.inputs[0], 1)
    last = last_extremum(draw.inputs[0], 1, find)
    assert not torch.equal(last, golden)
    assert only_ties(reference, draw, 0, last, golden)
    wrong = last.clone()
    others = (draw.inputs[0][0, :, 0] != draw.inputs[0][0, golden[0, 0], 0]).nonzero()
    wrong[0, 0] = int(others[0])
    assert not only_ties(reference, draw, 0, wrong, golden)
    assert not only_ties(reference, draw, 0, last + 6, golden)  # out of range
    assert not only_ties(reference, draw, 0, last - 6, golden)


@pytest.mark.parametrize(
    ("body", "dim"),
    [("x.max(2, keepdim=True)[1]", 2), ("x.argmax()", None), ("torch.min(x, -1).indices", -1)],
)
def test_forms_of_one_index(body, dim):
    reference = build_reference(forward(body, "torch.rand(2, 6, 9)"))
    law = tie_laws(reference, reference.draw(1, "shipped"))[0]
    assert (law.argument, law.dim, law.distinct) == (0, dim, False)
    draw = tied(reference)
    golden = reference.golden(draw)[0]
    assert only_ties(reference, draw, 0, golden, golden)
    assert not only_ties(reference, draw, 0, golden * 0 + 10_000, golden)


def test_indices_of_the_largest_may_change_places_but_not_occur_twice():
    reference = build_reference(forward("torch.topk(x, 3, dim=1)[1]", "torch.rand(2, 6, 9)"))
    draw = tied(reference)
    draw.inputs[0][:] = 1.0
    draw.inputs[0][:, 0] = 2.0
    golden = torch.tensor([0, 1, 2]).view(1, 3, 1).expand(2, 3, 9).contiguous()
    assert only_ties(reference, draw, 0, golden + torch.tensor([0, 2, 3]).view(1, 3, 1), golden)
    twice = golden.clone()
    twice[:, 2] = 1
    assert not only_ties(reference, draw, 0, twice, golden)
    swapped = golden[:, [1, 0, 2]]
    assert not only_ties(reference, draw, 0, swapped, golden)


@pytest.mark.parametrize(
    ("body", "open_ties"),
    [
        ("torch.sort(x, dim=1)[1]", True),
        ("torch.argsort(x, dim=1)", True),
        ("torch.sort(x, dim=1, stable=False)[1]", True),
        ("torch.sort(x, dim=1, stable=True)[1]", False),
        ("torch.argsort(x, dim=1, stable=True)", False),
    ],
)
def test_a_stable_sort_promises_an_order_and_any_other_does_not(body, open_ties):
    reference = build_reference(forward(body, "torch.rand(2, 6, 9)"))
    draw = tied(reference)
    draw.inputs[0][:] = 1.0
    golden = reference.golden(draw)[0]
    assert only_ties(reference, draw, 0, golden.flip(1), golden) == open_ties
    assert not only_ties(reference, draw, 0, golden * 0, golden)


@pytest.mark.parametrize("shift", [0, 1])
def test_the_look_at_conduct_leaves_ties_open_too(shift):
    reference = build_reference(forward("torch.argmax(x, dim=1)", "torch.rand(2, 6, 9)"))
    draw = tied(reference)
    goldens = reference.golden(draw)
    book = CaseBook(reference, "nominal")
    book.add_draw(draw)
    last = last_extremum(draw.inputs[0], 1, torch.argmax)
    assert not torch.equal(last, goldens[0])
    known = Known(reference, book.cases[0], draw, goldens)
    assert known.is_right([(last + shift) % 6]) == (shift == 0)


def test_an_index_into_what_forward_has_computed_stays_exact():
    reference = build_reference(forward("torch.argmax(x * 2, dim=1)", "torch.rand(2, 6, 9)"))
    draw = tied(reference)
    golden = torch.argmax(draw.inputs[0], 1)
    last = last_extremum(draw.inputs[0], 1, torch.argmax)
    assert tie_laws(reference, draw) == {}
    assert not only_ties(reference, draw, 0, last, golden)


@pytest.mark.skipif(not DATA, reason="HOTLOOP_KERNELBENCH is not set")
@pytest.mark.parametrize("number", [51, 52])
def test_kernelbench_problems_of_indices(number):
    entry = load_kernelbench(f"kernelbench/1/{number}", DATA)
    source = entry.problem().source.replace("batch_size = 128", "batch_size = 2")
    source = source.replace("dim1 = 4096", "dim1 = 6").replace("dim2 = 4095", "dim2 = 9")
    reference = build_reference(model(source))
    assert reference.specs()[0][0].shape == (2, 6, 9)
    draw = tied(reference)
    find = {51: torch.argmax, 52: torch.argmin}[number]
    golden = reference.golden(draw)[0]
    last = last_extremum(draw.inputs[0], 1, find)
    assert not torch.equal(last, golden)
    assert only_ties(reference, draw, 0, last, golden)
    assert not only_ties(reference, draw, 0, (last + 1) % 6, golden)
