"""The envelope holds honest simple kernels and leaves lower precision outside."""

import pytest
import torch
from problem_files import forward

from hotloop.worker.compare import gate, make_bound
from hotloop.worker.envelope import BlockedSequential, outlier_reason
from hotloop.worker.precision import PRECISIONS, applied
from hotloop.worker.reference import build_reference


def bound_of(reference, draw, dtype=torch.float32):
    golden = reference.golden(draw)[0]
    members = [m[0] for m in reference.envelope(draw).values()]
    return golden, make_bound(golden, members, dtype, exact=False)


def tf32(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def naive_product(a, b):
    out = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        out += a[:, k : k + 1] * b[k : k + 1]
    return out


@pytest.mark.parametrize("profile", ["shipped", "normal", "positive_mean"])
def test_a_naive_float32_product_is_inside_and_tf32_is_not(profile):
    reference = build_reference(forward("x @ y", "torch.rand(96, 2048)", "torch.rand(2048, 96)"))
    draw = reference.draw(3, profile)
    golden, bound = bound_of(reference, draw)
    a, b = draw.inputs
    assert gate(naive_product(a, b), golden, bound).passed
    assert gate(a @ b, golden, bound).passed
    assert not gate(tf32(a) @ tf32(b), golden, bound).passed
    error = (tf32(a).double() @ tf32(b).double() - golden).square().mean().sqrt()
    if profile == "normal":
        assert float(error) > 30 * bound.envelope_rmse


def lanes_sum(x, lanes=128):
    sums = torch.zeros(x.shape[0], lanes)
    for start in range(0, x.shape[1], lanes):
        sums += x[:, start : start + lanes]
    return sums.sum(1)


def test_running_sums_of_rows_are_inside():
    reference = build_reference(forward("x.sum(1)", "torch.rand(40, 16384)"))
    draw = reference.draw(3, "positive_mean")
    golden, bound = bound_of(reference, draw)
    assert gate(lanes_sum(draw.inputs[0]), golden, bound).passed
    assert not gate(draw.inputs[0].half().sum(1).float(), golden, bound).passed


@pytest.mark.parametrize(
    ("body", "init"),
    [
        ("torch.softmax(x, 1)", "pass"),
        ("torch.log_softmax(x, 1)", "pass"),
        ("x.mean((0, 2))", "pass"),
        ("torch.var(x, 1)", "pass"),
        ("torch.std(x, (1, 2))", "pass"),
        ("x.logsumexp(1)", "pass"),
        ("x.cumsum(1)", "pass"),
        ("x.cumprod(1)", "pass"),
        ("x.sum()", "pass"),
        ("self.n(x)", "self.n = torch.nn.LayerNorm(12)"),
        ("self.n(x)", "self.n = torch.nn.GroupNorm(3, 6)"),
        ("self.n(x)", "self.n = torch.nn.InstanceNorm1d(6)"),
        ("self.n(x)", "self.n = torch.nn.BatchNorm1d(6)"),
        ("self.n(x)", "self.n = torch.nn.BatchNorm1d(6).eval()"),
        ("self.n(x)", "self.n = torch.nn.RMSNorm(12)"),
        ("torch.nn.functional.mse_loss(x, x.flip(0))", "pass"),
        ("x.norm(dim=1)", "pass"),
        ("self.n(x)", "self.n = torch.nn.Linear(12, 5)"),
        ("x @ x.mT", "pass"),
        ("torch.baddbmm(x, x, x.mT @ x)", "pass"),
        ("x[0, 0].dot(x[1, 1])", "pass"),
        ("self.n(x)", "self.n = torch.nn.Conv1d(6, 8, 3, stride=2, padding=1)"),
        ("self.n(x)", "self.n = torch.nn.ConvTranspose1d(6, 8, 3, padding=1)"),
        ("self.n(x)", "self.n = torch.nn.Conv1d(6, 6, 3, groups=6)"),
        ("torch.nn.functional.scaled_dot_product_attention(x, x, x)", "pass"),
        ("torch.prod(x + 0.5, dim=1)", "pass"),
        ("torch.tanh(x - 0.5)", "pass"),
        ("torch.nn.functional.gelu(x)", "pass"),
        ("torch.nn.functional.gelu(x, approximate='tanh')", "pass"),
        ("torch.nn.functional.softsign(x)", "pass"),
        ("x / 3 + 1 / (1 + x)", "pass"),
        ("self.n(x)[0]", "self.n = torch.nn.LSTM(12, 5)"),
    ],
)
def test_other_orders_compute_the_same_function(body, init):
    reference = build_reference(forward(body, "torch.rand(4, 6, 12)", init=init))
    draw = reference.draw(3, "shipped")
    members = reference.envelope(draw)
    golden = reference.golden(draw)[0]
    assert list(members) == ["eager", "sequential", "reordered"]
    scale = float(golden.abs().max())
    for got, *_ in members.values():
        assert got.shape == members["eager"][0].shape
        assert got.dtype is torch.float32
        assert float((got.double() - golden).abs().max()) < 3e-6 * scale


def test_sixteen_bit_products_accumulate_in_float32():
    inputs = [f"torch.rand({a}, {b}).bfloat16()" for a, b in ((32, 4096), (4096, 32))]
    reference = build_reference(forward("x @ y", *inputs))
    draw = reference.draw(3, "positive_mean")
    golden, bound = bound_of(reference, draw, torch.bfloat16)
    a, b = draw.inputs
    assert gate(naive_product(a.float(), b.float()).bfloat16(), golden, bound).passed
    rounded = torch.zeros(32, 32, dtype=torch.bfloat16)
    for k in range(0, 4096, 64):
        rounded += a[:, k : k + 64] @ b[k : k + 64]
    assert not gate(rounded, golden, bound).passed


def test_references_with_one_order_have_eager_alone():
    reference = build_reference(forward("torch.relu(x) * 2", "torch.rand(64)"))
    assert set(reference.envelope(reference.draw(1, "shipped"))) == {"eager"}


def test_a_miscompiled_member_may_not_widen_the_envelope():
    eager = torch.rand(64)
    other = eager * (1 + 1e-6)
    assert outlier_reason((eager * (1 + 2e-7),), (eager,), [(other,)]) is None
    assert outlier_reason((eager + 0.01,), (eager,), [(other,)]) is not None
    assert outlier_reason((eager * float("nan"),), (eager,), [(other,)]) is not None


def test_precision_flags_are_set_for_the_block_only():
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    seen = {}
    for name, policy in PRECISIONS.items():
        with applied(policy):
            seen[name] = matmul.allow_tf32, cudnn.allow_tf32
    assert seen["as_shipped"] == (False, True)
    assert seen["strict"] == (False, False)
    assert seen["tf32"] == (True, True)
    assert (matmul.allow_tf32, cudnn.allow_tf32) == before


def test_a_softmax_by_powers_of_two_passes_and_one_with_coarse_exponents_does_not():
    x = torch.randn(4, 20_000, generator=torch.Generator().manual_seed(5)) * 16
    golden = torch.softmax(x.double(), dim=-1)
    with BlockedSequential():
        simple = torch.softmax(x, dim=-1)
    bound = make_bound(golden, [torch.softmax(x, dim=-1), simple], torch.float32, exact=False)
    shifted = (x - x.amax(dim=-1, keepdim=True)) * 1.44269504
    fast = torch.exp2(shifted)
    assert gate(fast / fast.sum(dim=-1, keepdim=True), golden, bound).passed
    coarse = torch.exp2(shifted.bfloat16().float())
    assert not gate(coarse / coarse.sum(dim=-1, keepdim=True), golden, bound).passed
