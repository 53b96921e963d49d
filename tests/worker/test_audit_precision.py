"""Lower precision: refused by sound checks, and named where it passes."""

import pytest
import torch
from audited import audited, trial
from problem_files import attention, forward

from hotloop.core.audit import FakeGroup, TrialState
from hotloop.worker.audit_precision import round_result
from hotloop.worker.audit_sums import NarrowSums

CAUGHT, ACCEPTED = TrialState.CAUGHT, TrialState.ACCEPTED
SKIPPED = TrialState.SKIPPED
HALF = "dtype=torch.bfloat16"


def precision(found):
    return {t.name: t.state for t in found.trials if t.group is FakeGroup.PRECISION}


def test_a_float32_product_refuses_tf32_rounding_and_narrow_sums():
    found = audited(forward("x @ y", "torch.rand(32, 512)", "torch.rand(512, 32)"))
    assert precision(found) == {
        "operands rounded to tf32": CAUGHT,
        "result rounded to bf16": CAUGHT,
        "sums kept in bfloat16": CAUGHT,
    }


def test_a_16_bit_product_refuses_fp8_and_narrow_sums():
    inputs = (f"torch.rand(64, 1024, {HALF})", f"torch.rand(1024, 64, {HALF})")
    found = audited(forward("x @ y", *inputs))
    assert set(precision(found).values()) == {CAUGHT}
    assert "operands rounded to fp8" in precision(found)
    assert found.rankable


@pytest.mark.slow
def test_attention_refuses_lower_precision():
    found = audited(attention('dtype = "bfloat16"\n', B=1, H=1, S=256, D=32))
    assert trial(found, "operands rounded to fp8").state is CAUGHT
    assert trial(found, "result rounded to fp8").state is CAUGHT


def test_a_product_that_hardly_counts_lets_lower_precision_pass():
    body = "x + 1e-13 * (x @ y)"
    found = audited(forward(body, "torch.rand(64, 64)", "torch.rand(64, 64)"))
    assert trial(found, "operands rounded to tf32").state is ACCEPTED
    assert not found.rankable
    assert any("lower precision" in reason for reason in found.reasons)


def test_without_products_rounded_operands_are_no_reason():
    found = audited(forward("x + 1e-14 * y", "torch.rand(64, 64)", "torch.rand(64, 64)"))
    assert not any("operands" in reason for reason in found.reasons)


def test_short_sums_and_integers_are_left_out_with_the_reason():
    found = audited(forward("x @ y", "torch.rand(32, 32)", "torch.rand(32, 32)"))
    assert trial(found, "sums kept in bfloat16").why == "there are no sums of more than a few steps"
    found = audited(forward("x.argmax(1)", "torch.rand(32, 32)"))
    assert trial(found, "lower precision").why == "no output is floating point"
    assert found.rankable


def test_what_asserts_its_range_is_given_no_foreign_values():
    body = "torch.nn.functional.binary_cross_entropy(torch.sigmoid(x), y)"
    found = audited(forward(body, "torch.rand(16, 16)", "torch.rand(16, 16)"))
    assert precision(found) == {"all": SKIPPED}
    whys = {t.why for t in found.trials if t.name == "all"}
    assert whys == {"binary_cross_entropy accepts only a range of values"}
    assert trial(found, "other values of x").state is CAUGHT


OPERATIONS = {
    "matmul": lambda x, w: x @ w,
    "addmm": lambda x, w: torch.addmm(w[0], x, w),
    "bmm": lambda x, w: torch.bmm(x[None], w[None])[0],
    "mv": lambda x, w: x @ w[:, 0],
    "sum": lambda x, w: x.sum(1),
    "mean": lambda x, w: x.mean(1, keepdim=True),
    "softmax": lambda x, w: x.softmax(1),
    "log_softmax": lambda x, w: x.log_softmax(1),
    "cumsum": lambda x, w: x.cumsum(1),
    "variance": lambda x, w: x.var(1),
    "layer_norm": lambda x, w: torch.nn.functional.layer_norm(x, x.shape[1:]),
    "convolution": lambda x, w: torch.conv1d(x[None].mT, w.T[:, :, None])[0],
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_narrow_sums_are_the_operation_but_for_bfloat16_rounding(name):
    gen = torch.Generator().manual_seed(1)
    x, w = torch.rand(8, 256, generator=gen), torch.rand(256, 4, generator=gen)
    want = OPERATIONS[name](x, w)
    mode = NarrowSums(torch.bfloat16)
    with torch.no_grad(), mode:
        got = OPERATIONS[name](x, w)
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    assert mode.longest > 8
    error = float((got - want).abs().max() / want.abs().max())
    assert 1e-5 < error < 0.1


@pytest.mark.parametrize(
    ("dtype", "smallest", "largest"),
    [
        (torch.float64, 1e-9, 1e-7),
        (torch.float32, 1e-4, 5e-3),
        (torch.bfloat16, 5e-3, 0.08),
        (torch.float16, 5e-3, 0.08),
    ],
)
def test_results_are_rounded_to_the_next_shorter_type(dtype, smallest, largest):
    x = torch.rand(1000, generator=torch.Generator().manual_seed(1)).to(dtype) * 1000
    rounded = round_result(x)
    assert rounded.dtype == dtype
    error = float(((rounded.double() - x.double()) / x.double()).square().mean().sqrt())
    assert smallest < error < largest
    assert torch.equal(round_result(torch.zeros(4, dtype=dtype)), torch.zeros(4, dtype=dtype))
