"""The gate passes legitimate implementations and refuses what is worse, wherever it hides."""

import pytest
import torch

from hotloop.worker.cases import MAX_CONDITIONING
from hotloop.worker.compare import TILE, error_stats, gate, make_bound, timed_gate, unravel

SIZE = 4 * TILE + 123


def matmul_case(dtype=torch.float32, k=512):
    gen = torch.Generator().manual_seed(1)
    a = torch.randn(256, k, generator=gen).to(dtype)
    b = torch.randn(k, 256, generator=gen).to(dtype)
    golden = a.double() @ b.double()
    eager = (a.float() @ b.float()).to(dtype)
    sequential = torch.zeros(256, 256)
    for start in range(0, k, 32):
        sequential += a[:, start : start + 32].float() @ b[start : start + 32].float()
    bound = make_bound(golden, [eager, sequential.to(dtype)], dtype, exact=False)
    return a, b, golden, bound


def tf32(x: torch.Tensor) -> torch.Tensor:
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def test_naive_fp32_accumulation_passes():
    a, b, golden, bound = matmul_case()
    naive = torch.zeros(256, 256)
    for k in range(a.shape[1]):
        naive += a[:, k : k + 1] * b[k : k + 1]
    assert gate(naive, golden, bound).passed


def test_tf32_fails_a_float32_gate():
    a, b, golden, bound = matmul_case()
    result = gate(tf32(a) @ tf32(b), golden, bound)
    assert not result.passed
    assert result.rule == "bulk"


def test_low_precision_accumulation_fails_a_bf16_gate():
    a, b, golden, bound = matmul_case(torch.bfloat16, k=2048)
    total = torch.zeros(256, 256, dtype=torch.bfloat16)
    for start in range(0, 2048, 32):
        total = (
            total + (a[:, start : start + 32].float() @ b[start : start + 32].float()).bfloat16()
        )
    assert not gate(total, golden, bound).passed
    honest = (a.float() @ b.float()).bfloat16()
    assert gate(honest, golden, bound).passed


def elementwise_case(size=SIZE):
    golden = torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    eager = golden.float()
    return golden, eager, make_bound(golden, [eager], torch.float32, exact=False)


def test_one_wrong_element_fails():
    golden, eager, bound = elementwise_case()
    assert gate(eager, golden, bound).passed
    wrong = eager.clone()
    wrong[TILE + 7] += 1e-3
    result = gate(wrong, golden, bound)
    assert not result.passed
    assert result.stats.worst == TILE + 7


def test_one_slightly_wrong_tile_fails_by_the_tile_rule():
    golden = torch.randn(4096 * TILE // 64, dtype=torch.float64)
    noise = torch.randn_like(golden) * 1e-5
    bound = make_bound(golden, [(golden + noise).float()], torch.float32, exact=False)
    candidate = (golden + noise).float()
    candidate[:TILE] = (golden[:TILE] + 4.5 * noise[:TILE].abs().mean()).float() + 2.5e-5
    result = gate(candidate, golden, bound)
    assert not result.passed
    assert result.rule in ("tile", "tail")
    assert result.bad_tiles == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nonfinite_fails_and_is_located(value):
    golden, eager, bound = elementwise_case()
    wrong = eager.clone()
    wrong[5] = value
    result = gate(wrong, golden, bound)
    assert result.rule == "nonfinite"
    assert result.stats.worst == 5


def test_zeros_fail_however_small_the_golden():
    golden = torch.rand(SIZE, dtype=torch.float64) * 1e-8
    bound = make_bound(golden, [golden.float()], torch.float32, exact=False)
    assert gate(golden.float(), golden, bound).passed
    assert not gate(torch.zeros(SIZE), golden, bound).passed


def test_exact_rule_allows_no_deviation():
    golden = torch.randint(-8, 8, (100,)).double()
    bound = make_bound(golden, [golden.bfloat16()], torch.bfloat16, exact=True)
    assert gate(golden.bfloat16(), golden, bound).passed
    off = golden.bfloat16()
    off[3] += 0.0625
    assert gate(off, golden, bound).rule == "exact"


def test_integers_are_exact():
    golden = torch.arange(10)
    bound = make_bound(golden, [golden], torch.int64, exact=False)
    assert bound.exact
    assert not gate(golden + 1, golden, bound).passed


@pytest.mark.parametrize(("value", "void"), [(float("inf"), True), (1.0, False)])
def test_an_envelope_that_is_not_finite_voids_the_gate(value, void):
    golden = torch.ones(10, dtype=torch.float64)
    member = golden.float()
    member[3] = value
    bound = make_bound(golden, [golden.float(), member], torch.float32, exact=False)
    assert (bound.conditioning > MAX_CONDITIONING) is void


def test_timed_gate_follows_the_triangle():
    golden, eager, bound = elementwise_case()
    assert timed_gate(eager, eager, bound)
    assert timed_gate(eager * (1 + 2e-7), eager, bound)
    wrong = eager.clone()
    wrong[-1] += 1e-3
    assert not timed_gate(wrong, eager, bound)
    wrong[-1] = float("nan")
    assert not timed_gate(wrong, eager, bound)


def test_stats_cover_the_last_partial_tile():
    golden = torch.zeros(SIZE, dtype=torch.float64)
    candidate = torch.zeros(SIZE)
    candidate[-1] = 2.0
    stats = error_stats(candidate, golden)
    assert stats.worst == SIZE - 1
    assert stats.tile_sum_sq[-1].item() == 4.0
    assert stats.tile_sum_sq[:-1].sum().item() == 0.0


def test_unravel():
    assert unravel(23, (2, 3, 4)) == (1, 2, 3)
