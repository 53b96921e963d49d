"""Behind a large bias a variance in one pass is refused, accumulators that begin there are not."""

import itertools

import pytest
import torch
from problem_files import forward
from torch.nn import functional as F

from hotloop.worker import from_bias
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.parameter_reach import BIAS
from hotloop.worker.reference import build_reference

SEEDS = 3
MANY_SEEDS = 10
CONV = "self.c = torch.nn.Conv3d(3, 16, 4)"
UP = "self.c = torch.nn.ConvTranspose3d(3, 16, 3, stride=2, padding=1)"


def group_norm(y, form, groups=4):
    return form(y.reshape(y.shape[0] * groups, -1)).view_as(y)


def batch_norm(y, form):
    rows = form(y.transpose(0, 1).reshape(y.shape[1], -1))
    return rows.view(y.shape[1], y.shape[0], *y.shape[2:]).transpose(0, 1)


def pooled(y):
    return F.avg_pool3d(F.avg_pool3d(y, 2), 2)


PROBLEMS = {
    "KernelBench 2/27": (
        "torch.nn.functional.hardswish(self.c(x))",
        "self.n({}).mean((2, 3, 4))",
        f"{CONV}; self.n = torch.nn.GroupNorm(4, 16)",
        "4, 3, 8, 12, 12",
        lambda y, form: group_norm(F.hardswish(y), form).mean((2, 3, 4)),
    ),
    "KernelBench 2/60": (
        "torch.nn.functional.silu(self.c(x))",
        "torch.nn.functional.hardswish(self.n({}))",
        f"{UP}; self.n = torch.nn.GroupNorm(4, 16)",
        "2, 3, 4, 8, 8",
        lambda y, form: F.hardswish(group_norm(F.silu(y), form)),
    ),
    "KernelBench 2/15": (
        "self.c(x)",
        "(lambda y: y - y.mean((2, 3, 4), keepdim=True))(self.n({}))",
        "self.c = torch.nn.ConvTranspose3d(16, 32, 3, stride=2, padding=1); "
        "self.n = torch.nn.BatchNorm3d(32)",
        "2, 16, 4, 4, 4",
        lambda y, form: (lambda z: z - z.mean((2, 3, 4), keepdim=True))(batch_norm(y, form)),
    ),
    "KernelBench 2/72": (
        "self.c(x)",
        "torch.nn.functional.avg_pool3d(torch.nn.functional.avg_pool3d(self.n({}), 2), 2)",
        f"{UP}; self.n = torch.nn.BatchNorm3d(16)",
        "2, 3, 4, 8, 8",
        lambda y, form: pooled(batch_norm(y, form)),
    ),
}


def reference_of(name):
    inner, outer, init, shape, _ = PROBLEMS[name]
    return build_reference(forward(outer.format(inner), f"torch.rand({shape})", init=init))


def scaled(rows, mean, variance):
    return (rows - mean) * torch.rsqrt(variance.clamp(min=0) + 1e-5)


def two_passes(rows):
    mean = rows.mean(1, keepdim=True)
    return scaled(rows, mean, (rows - mean).square().mean(1, keepdim=True))


def welford(rows):
    lanes = rows.shape[1] // 32
    parts = rows[:, : 32 * lanes].unflatten(1, (lanes, 32))
    mean, squares = torch.zeros_like(parts[:, 0]), torch.zeros_like(parts[:, 0])
    for i, part in enumerate(parts.unbind(1)):
        step = part - mean
        mean = mean + step / (i + 1)
        squares = squares + step * (part - mean)
    count, rest = 32 * lanes, rows[:, 32 * lanes :]
    whole = mean.mean(1, keepdim=True)
    total = (squares + lanes * (mean - whole).square()).sum(1, keepdim=True)
    if rest.shape[1]:
        own, n = rest.mean(1, keepdim=True), rest.shape[1]
        step = own - whole
        total = total + (rest - own).square().sum(1, keepdim=True)
        total = total + step.square() * (count * n / (count + n))
        whole = whole + step * (n / (count + n))
    return scaled(rows, whole, total / rows.shape[1])


def shifted(rows):
    moved = rows - rows[:, :1]
    mean = moved.mean(1, keepdim=True)
    return scaled(moved, mean, moved.square().mean(1, keepdim=True) - mean.square())


def one_pass(rows):
    mean = rows.mean(1, keepdim=True)
    return scaled(rows, mean, rows.square().mean(1, keepdim=True) - mean.square())


def convolved(reference, draw, name, *, begins_at_bias):
    weight, bias = draw.state["c.weight"], draw.state["c.bias"]
    up = "Transpose" in PROBLEMS[name][2]
    rest = ([2] * 3, [1] * 3, [1] * 3, True, [0] * 3, 1)
    rest = rest if up else ([1] * 3, [0] * 3, [1] * 3, False, [0] * 3, 1)
    if begins_at_bias:
        return from_bias.convolution(draw.inputs[0], weight, bias, *rest)
    plain = torch.ops.aten.convolution.default(draw.inputs[0], weight, None, *rest)
    return plain + bias.view(-1, 1, 1, 1)


def verdicts(name, seeds):
    """Return (form, whether it begins at the bias) of all that passed and all that did not."""
    reference = reference_of(name)
    assert "biased" in reference.profiles
    book = CaseBook(reference, "nominal")
    for seed in range(seeds):
        book.add("biased", seed, cache_bytes=1 << 26)
    assert list(book.members) == ["eager", "sequential", "reordered", "from_bias"]
    found = []
    for case, begins in itertools.product(book, (False, True)):
        draw, (golden,) = book.materialise(case)
        y = convolved(reference, draw, name, begins_at_bias=begins)
        for form in (two_passes, welford, shifted, one_pass):
            output = PROBLEMS[name][-1](y, form).contiguous()
            found.append((form is one_pass, gate(output, golden, case.bounds[0]).passed))
    return found


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_variance_in_one_pass_is_refused_and_every_honest_form_passes(name):
    assert {is_one != passed for is_one, passed in verdicts(name, SEEDS)} == {True}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_it_is_so_on_many_seeds(name):
    assert {is_one != passed for is_one, passed in verdicts(name, MANY_SEEDS)} == {True}


def test_without_its_member_kernels_that_begin_at_the_bias_were_refused():
    name = "KernelBench 2/15"
    reference = reference_of(name)
    draw = reference.draw(5, "biased")
    members = reference.envelope(draw)
    assert "from_bias" in members
    assert "from_bias" not in reference.envelope(reference.draw(5, "normal"))
    exact = PROBLEMS[name][-1]
    (golden,) = reference.golden(draw)
    kept = [m[0] for member, m in members.items() if member != "from_bias"]
    bound = make_bound(golden, kept, torch.float32, exact=False)
    y = convolved(reference, draw, name, begins_at_bias=True)
    assert not gate(exact(y, two_passes).contiguous(), golden, bound).passed


LAYERS = "self.c, self.n = torch.nn.Linear(32, 48), torch.nn.LayerNorm({})"


@pytest.mark.parametrize(
    ("body", "init", "is_biased"),
    [
        ("self.n(self.c(x))", LAYERS.format(48), True),
        ("self.c(x).var(1)", LAYERS.format(48), True),
        ("self.c(self.n(x))", LAYERS.format(32), False),
        ("self.c(x) * 2", LAYERS.format(48), False),
        ("self.n(torch.softmax(self.c(x), 1))", LAYERS.format(48), False),
        ("self.n(x @ self.c.weight.T)", LAYERS.format(48), False),
        ("self.n(torch.tanh(self.c(x)))", LAYERS.format(48), False),
    ],
)
def test_biases_are_large_only_where_a_variance_is_formed_behind_one(body, init, is_biased):
    reference = build_reference(forward(body, "torch.rand(64, 32)", init=init))
    assert ("biased" in reference.profiles) == is_biased
    if is_biased:
        state = reference.draw(1, "biased").state
        assert float((state["c.bias"] - BIAS).abs().max()) < 6
        assert torch.equal(state["n.weight"], torch.ones(48))
        assert torch.equal(state["n.bias"], torch.zeros(48))


def test_other_dtypes_keep_their_biases():
    body, init = "self.n(self.c(x.float()))", LAYERS.format(48)
    assert "biased" in build_reference(forward(body, "torch.rand(64, 32)", init=init)).profiles
    half = f"{init}; self.half()"
    reference = build_reference(
        forward("self.n(self.c(x))", "torch.rand(64, 32).half()", init=half)
    )
    assert "biased" not in reference.profiles


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "more", "groups"),
    [(1, 0, 1, 0, 1), (2, 1, 1, 1, 1), (2, 1, 2, 0, 2), (3, 2, 1, 2, 3), (1, 1, 1, 0, 6)],
)
def test_sums_from_the_bias_are_the_same_function(
    transposed, stride, padding, dilation, more, groups
):
    gen = torch.Generator().manual_seed(1)
    for spatial in (1, 2, 3):
        x = torch.randn(2, 6, *(9, 7, 8)[:spatial], generator=gen)
        channels = (6, 12 // groups) if transposed else (12, 6 // groups)
        weight = torch.randn(*channels, *[3] * spatial, generator=gen)
        bias = torch.randn(12, generator=gen)
        shape = [[v] * spatial for v in (stride, padding, dilation)]
        rest = (*shape, transposed, [more if transposed else 0] * spatial, groups)
        want = torch.ops.aten.convolution.default(x, weight, bias, *rest)
        got = from_bias.convolution(x, weight, bias, *rest)
        torch.testing.assert_close(got, want, atol=3e-5, rtol=1e-5)
    a, b, c = (torch.randn(s, generator=gen) for s in ((5, 9), (9, 4), (4,)))
    torch.testing.assert_close(from_bias.addmm(c, a, b), torch.addmm(c, a, b))
    scaled_sum = from_bias.addmm(c, a, b, beta=2, alpha=0.5)
    torch.testing.assert_close(scaled_sum, torch.addmm(c, a, b, beta=2, alpha=0.5))
