"""Where results are saturated, a share of gross errors is refused, and the luck of a few is not."""

import math

import pytest
import torch
from problem_files import forward

from hotloop.worker import gross
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import Rigour, gate, make_bound, reseeded
from hotloop.worker.gross import SLACK, gross_errors, most_gross, spread
from hotloop.worker.reference import build_reference

SEEDS = range(5)
LARGEST = 65504.0
"""Of float16."""
WEIGHT = "self.w = torch.nn.Parameter(torch.randn(128, 16) / 12)"
BODIES = {
    "chances": ("torch.softmax(x @ self.w, 1)", lambda y: torch.softmax(y, 1)),
    "gates": ("torch.sigmoid(torch.relu(x @ self.w))", lambda y: torch.sigmoid(torch.relu(y))),
    "clamped": ("torch.clamp(x @ self.w, -1, 1)", lambda y: y.clamp(-1, 1)),
}


@pytest.fixture(scope="module", params=list(BODIES))
def far(request):
    """Far values of a problem whose results are saturated, on several seeds, and its last part."""
    body, last = BODIES[request.param]
    reference = build_reference(forward(body, "torch.rand(512, 128)", init=WEIGHT))
    assert reference.rigour("far", 0) is Rigour.GROSS
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add("far", seed, cache_bytes=1 << 26)
    return book, last


def passes(far, product):
    """Return how many seeds a kernel passes that forms its product so."""
    book, last = far
    count = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        made = last(product(draw.inputs[0], draw.state["w"]))
        count += gate(made, golden, case.bounds[0]).passed
    return count


def as_tf32(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


HONEST = {
    "in eight parts": lambda x, w: sum(
        a @ b for a, b in zip(x.chunk(8, 1), w.chunk(8, 0), strict=True)
    ),
    "operands of 11 bits": lambda x, w: as_tf32(x) @ as_tf32(w),
    "transposed": lambda x, w: (w.mT @ x.mT).mT,
}
CHEATS = {
    "clamped to float16": lambda x, w: x.clamp(-LARGEST, LARGEST) @ w,
    "unscaled float16, and a maximum that drops NaN": lambda x, w: (
        x.half().float() @ w
    ).nan_to_num(0.0, posinf=0.0, neginf=0.0),
    "zeros": lambda x, w: torch.zeros(len(x), w.shape[1]),
    "the rows in another order": lambda x, w: (x @ w).roll(1, 0),
    "every sixteenth row wrong": lambda x, w: torch.cat([-x[:32], x[32:]]) @ w,
}


@pytest.mark.parametrize("name", list(HONEST))
def test_honest_kernels_pass_on_every_seed(far, name):
    assert passes(far, HONEST[name]) == len(SEEDS)


@pytest.mark.parametrize("name", list(CHEATS))
def test_wrong_results_are_refused_on_every_seed(far, name):
    assert passes(far, CHEATS[name]) == 0


def test_the_spread_is_the_deviation_of_what_is_finite(monkeypatch):
    monkeypatch.setattr(gross, "PIECE", 100)
    values = torch.randn(1037, dtype=torch.float64, generator=torch.manual_seed(1)) * 3 + 1e6
    assert spread(values) == pytest.approx(float(values.std(unbiased=False)), rel=1e-9)
    with_infinities = torch.cat([values, torch.tensor([math.inf, -math.inf, math.nan])])
    assert spread(with_infinities) == spread(values)
    assert spread(torch.full((7,), 3)) == 0
    assert spread(torch.tensor([math.nan])) == spread(torch.tensor([])) == 0


def test_gross_errors_are_counted(monkeypatch):
    monkeypatch.setattr(gross, "PIECE", 3)
    golden = torch.tensor([0.0, 1.0, 2.0, math.inf, math.nan, 5.0])
    assert gross_errors(golden, golden, 1.0) == 0
    assert gross_errors(golden + 0.49, golden, 1.0) == 0
    assert gross_errors(golden + 0.51, golden, 1.0) == 4
    other = torch.tensor([0.0, math.nan, 2.0, -math.inf, 0.0, 5.0])
    assert gross_errors(other, golden, 1.0) == 3
    assert gross_errors(other, golden, 0.0) == 0  # a constant has no scale


@pytest.mark.parametrize("count", [1, 255, 256, 100_000])
def test_so_many_may_be_gross_and_no_more(count):
    golden = (torch.arange(count) % 2).double()
    bound = make_bound(golden, [golden.float()], torch.float32, exact=False, rigour=Rigour.GROSS)
    most = most_gross(0, count)
    assert most == 1 + count // SLACK
    for bound_now in (bound, reseeded(bound, golden)):
        made = golden.float()
        made[:most] = 1 - made[:most]
        assert gate(made, golden, bound_now).passed
        if count > most:
            made[most] = 1 - made[most]
            assert gate(made, golden, bound_now).rule == "gross"


def test_the_worst_of_the_envelope_gives_room():
    golden = (torch.arange(1000) % 2).double()
    member = golden.float()
    member[:10] = 1 - member[:10]
    bound = make_bound(
        golden, [golden.float(), member], torch.float32, exact=False, rigour=Rigour.GROSS
    )
    made = golden.float()
    made[:44] = 1 - made[:44]
    assert most_gross(10, 1000) == 44
    assert gate(made, golden, bound).passed
    made[44] = 1 - made[44]
    assert not gate(made, golden, bound).passed
