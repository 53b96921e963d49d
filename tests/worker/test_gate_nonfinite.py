"""NaN and Inf that belong to a result are compared by place and kind; others void the inputs."""

import pytest
import torch
from problem_files import forward

from hotloop.errors import ProblemError
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate, make_bound, timed_gate, within_declared
from hotloop.worker.error_stats import count_beyond
from hotloop.worker.reference import build_reference

INF = float("inf")
NAN = float("nan")


def masked():
    golden = torch.randn(64, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    golden[torch.ones(64, 64).triu(1).bool()] = -INF
    golden[5, 0], golden[6, 0] = NAN, INF
    eager = golden.float()
    return golden, eager, make_bound(golden, [eager], torch.float32, exact=False)


def test_the_same_nan_and_inf_pass_and_the_rest_is_gated():
    golden, eager, bound = masked()
    assert bound.conditioning == 0 or bound.conditioning < 1e-6
    assert gate(eager, golden, bound).passed
    assert timed_gate(eager, eager, bound)
    assert within_declared(eager, golden, atol=1e-6, rtol=1e-6)
    assert count_beyond(eager, golden, 1e-6) == 0
    off = eager.clone()
    off[63, 0] += 1e-2
    assert gate(off, golden, bound).rule == "bulk"
    assert not timed_gate(off, eager, bound)
    assert not within_declared(off, golden, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((0, 1), INF),  # the other infinity
        ((0, 1), NAN),
        ((0, 1), -3e38),  # as small as it gets, and finite
        ((5, 0), INF),
        ((5, 0), 0.0),
        ((6, 0), NAN),
        ((9, 0), NAN),  # finite in the golden
        ((9, 0), -INF),
    ],
)
def test_another_value_where_either_is_not_finite_fails(place, value):
    golden, eager, bound = masked()
    wrong = eager.clone()
    wrong[place] = value
    result = gate(wrong, golden, bound)
    assert result.rule == "nonfinite"
    assert result.stats.nonfinite == 1
    assert result.stats.worst == place[0] * 64 + place[1]
    assert not timed_gate(wrong, eager, bound)
    assert not within_declared(wrong, golden, atol=1.0, rtol=1.0)
    assert count_beyond(wrong, golden, 1e6) == 1


def test_a_reference_with_infinities_of_its_own_can_be_judged():
    body = "torch.where(x < 0.3, -float('inf'), x * 2)"
    reference = build_reference(forward(body, "torch.rand(32, 64)"))
    assert reference.nonfinite
    book = CaseBook(reference, "nominal")
    book.add("shipped", 3, cache_bytes=0)
    draw, goldens = book.materialise(book.cases[0])
    eager = reference.eager(draw)[0]
    assert torch.isinf(eager).any()
    assert gate(eager, goldens[0], book.cases[0].bounds[0]).passed
    wrong = torch.where(torch.isinf(eager), torch.full_like(eager, -1e30), eager)
    assert not gate(wrong, goldens[0], book.cases[0].bounds[0]).passed


@pytest.mark.parametrize(
    "body",
    [
        "torch.exp(x * 200)",  # overflows float32 alone
        "x / 0",  # nothing finite is left
        "torch.where(x < 0.9, float('nan'), x)",  # hardly anything
    ],
)
def test_a_reference_that_is_not_finite_for_another_reason_is_refused(body):
    with pytest.raises(ProblemError, match="finite"):
        build_reference(forward(body, "torch.rand(32, 64)"))


def test_values_of_ours_may_not_be_the_reason_for_nan():
    reference = build_reference(forward("torch.asin(x)", "torch.rand(32, 64)"))
    assert not reference.nonfinite
    assert "shipped" in reference.profiles
    assert "normal" not in reference.profiles  # its sizes are beyond the domain as well
    assert any("'normal' left out" in note and "finite" in note for note in reference.notes)
