"""Scales below 0, wide variances, weights of one sign, small biases, tables: refused and passed.

Each mistake had passed every profile: no parameter had a value that shows it.
"""

import pytest
import torch
from problem_files import forward
from seeded_verdicts import SEEDS, book_of
from torch.nn import functional as F

from hotloop.worker.bound import Rigour
from hotloop.worker.compare import gate
from hotloop.worker.constants import SIZES, VARIANCE_BITS, perturb
from hotloop.worker.reference import build_reference


def build(body, x, init="pass"):
    return build_reference(forward(body, x, init=init))


def passed_on(book, kernel):
    """Return on how many seeds a kernel, a function of state and the input, passes."""
    passed = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        state = {name.rpartition(".")[2]: t for name, t in draw.state.items()}
        output = kernel(state, *draw.inputs).contiguous()
        passed += gate(output, golden, case.bounds[0]).passed
    return passed


def channels(v):
    return v[:, None, None]


def batch_norm(s, x, like=None):
    like = x if like is None else like
    mean = like.mean((0, 2, 3), keepdim=True)
    variance = (like - mean).square().mean((0, 2, 3), keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * channels(s["weight"]) + channels(s["bias"])


def folded(s, x):
    scale = s["weight"] * torch.rsqrt(s["running_var"] + 1e-5)
    return x * channels(scale) + channels(s["bias"] - s["running_mean"] * scale)


def normalised(s, x, root):
    inverse = root(s["running_var"] + 1e-5)
    return (x - channels(s["running_mean"])) * channels(inverse * s["weight"]) + channels(s["bias"])


def newton(v):
    root = 1.5 - 0.5 * v
    for _ in range(6):
        root = root * (1.5 - 0.5 * v * root * root)
    return root


def softmax(z, top=None):
    e = torch.exp(z - (z.amax(-1, keepdim=True) if top is None else top))
    return e / e.sum(-1, keepdim=True)


def begun_at_0(z):
    return z.amax(-1, keepdim=True).clamp(min=0)


def product(s, x):
    return x @ s["weight"].T


def in_halves(s, x):
    k = x.shape[-1] // 2
    w = s["weight"].T
    return s.get("bias", 0) + (x[..., :k] @ w[:k] + x[..., k:] @ w[k:])


def convolved(s, x):
    parts = (F.conv2d(x[:, i::2], s["weight"][:, i::2]) for i in (0, 1))
    return sum(parts) + channels(s["bias"])


def looked_up(s, x):
    return s["weight"][x]


def centred(y):
    return y - y.mean(-1, keepdim=True)


IMAGES, ROWS, TOKENS = (
    "torch.rand(8, {}, 12, 12)",
    "torch.randn(64, 96)",
    "torch.randint(0, 90, (16, 24))",
)
POOLED = "torch.nn.functional.max_pool2d(self.n(x), 2)"
UNBIASED = "self.c = torch.nn.Linear(96, 48, bias=False)"
LINEAR = "self.c = torch.nn.Linear(96, 48)"
TABLE = "self.e = torch.nn.Embedding(90, 64)"
CASES = {
    "a batch norm behind a maximum": (
        "normal",
        (POOLED, IMAGES.format(3), "self.n = torch.nn.BatchNorm2d(3)"),
        [lambda s, x: F.max_pool2d(batch_norm(s, x), 2)],
        [lambda s, x: batch_norm(s, F.max_pool2d(x, 2), x)],
    ),
    "a scale behind relu": (
        "normal",
        ("torch.relu(self.s * x)", ROWS, "self.s = torch.nn.Parameter(torch.ones(1))"),
        [
            lambda s, x: torch.relu(s["s"] * x),
            lambda s, x: s["s"] * torch.where(s["s"] * x > 0, x, 0),
        ],
        [lambda s, x: s["s"] * torch.relu(x)],
    ),
    "a maximum divided by a temperature": (
        "large",
        ("torch.softmax(x / self.t, 1)", ROWS, "self.t = torch.nn.Parameter(torch.ones(1))"),
        [lambda s, x: softmax(x / s["t"]), lambda s, x: softmax(x * (1 / s["t"]))],
        [lambda s, x: softmax(x / s["t"], x.amax(1, keepdim=True) / s["t"])],
    ),
    "a slope over 1": (
        "normal",
        ("self.p(x)", ROWS, "self.p = torch.nn.PReLU()"),
        [
            lambda s, x: torch.where(x > 0, x, s["weight"] * x),
            lambda s, x: x.clamp(min=0) + s["weight"] * x.clamp(max=0),
        ],
        [lambda s, x: torch.maximum(x, s["weight"] * x)],
    ),
    "slopes of channels over 1": (
        "normal",
        ("self.p(x)", ROWS, "self.p = torch.nn.PReLU(96)"),
        [lambda s, x: torch.where(x > 0, x, s["weight"] * x)],
        [lambda s, x: torch.maximum(x, s["weight"] * x)],
    ),
    "variances far from 1": (
        "normal",
        ("self.n(x)", IMAGES.format(16), "self.n = torch.nn.BatchNorm2d(16).eval()"),
        [folded, lambda s, x: normalised(s, x, torch.rsqrt)],
        [
            lambda s, x: normalised(s, x, newton),
            lambda s, x: normalised(s, x, lambda v: torch.rsqrt(v.clamp(0.5, 1.6))),
            lambda s, x: folded({**s, "running_mean": torch.zeros(16)}, x),
        ],
    ),
    "a maximum behind a product": (
        "far",
        ("self.c(x).amax(1)", ROWS, UNBIASED),
        [lambda s, x: product(s, x).amax(1), lambda s, x: in_halves(s, x).amax(1)],
        [lambda s, x: product(s, x).amax(1).clamp(min=0)],
    ),
    "a minimum behind a product": (
        "far",
        ("self.c(x).amin(1)", ROWS, UNBIASED),
        [lambda s, x: product(s, x).amin(1), lambda s, x: in_halves(s, x).amin(1)],
        [lambda s, x: product(s, x).amin(1).clamp(max=0)],
    ),
    "a softmax behind a product": (
        "far",
        ("torch.softmax(self.c(x), 1)", ROWS, UNBIASED),
        [lambda s, x: softmax(product(s, x)), lambda s, x: softmax(in_halves(s, x))],
        [lambda s, x: softmax(product(s, x), begun_at_0(product(s, x)))],
    ),
    "a minimum behind tanh": (
        "biased",
        (
            "torch.tanh(torch.tanh(self.c(x).amin(1)))",
            IMAGES.format(4),
            "self.c = torch.nn.Conv2d(4, 16, 3)",
        ),
        [lambda s, x: convolved(s, x).amin(1).tanh().tanh()],
        [lambda s, x: convolved(s, x).amin(1).clamp(max=0).tanh().tanh()],
    ),
    "a maximum behind a sigmoid": (
        "biased",
        ("torch.sigmoid(self.c(x).amax(1))", ROWS, LINEAR),
        [lambda s, x: in_halves(s, x).amax(1).sigmoid()],
        [lambda s, x: in_halves(s, x).amax(1).clamp(min=0).sigmoid()],
    ),
    "tokens: exp without a maximum": (
        "large",
        ("torch.softmax(self.e(x), -1)", TOKENS, TABLE),
        [lambda s, x: softmax(looked_up(s, x))],
        [lambda s, x: softmax(looked_up(s, x), 0)],
    ),
    "tokens: a maximum from 0": (
        "far",
        ("self.e(x).amax(1)", TOKENS, TABLE),
        [lambda s, x: looked_up(s, x).amax(1)],
        [lambda s, x: looked_up(s, x).amax(1).clamp(min=0)],
    ),
    "tokens: a variance in one pass": (
        "positive_mean",
        ("self.e(x).var(-1, unbiased=False)", TOKENS, TABLE),
        [lambda s, x: centred(looked_up(s, x)).square().mean(-1)],
        [lambda s, x: (lambda y: y.square().mean(-1) - y.mean(-1).square())(looked_up(s, x))],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_is_refused_and_honest_ones_pass_on_every_seed(name):
    profile, problem, honest, wrong = CASES[name]
    book = book_of(build(*problem), profile)
    assert [passed_on(book, kernel) for kernel in honest] == [len(SEEDS)] * len(honest)
    assert [passed_on(book, kernel) for kernel in wrong] == [0] * len(wrong)


@pytest.mark.parametrize("count", [1, 3, 4, 64])
def test_a_share_of_scales_is_below_0_and_no_size_is_near_it(count):
    for seed in SEEDS:
        state = {"s": torch.ones(count), "p": torch.full((count,), 0.25)}
        perturb(state, frozenset(state), torch.Generator().manual_seed(seed))
        assert int((state["s"] < 0).sum()) == max(1, count // 4)
        assert (
            SIZES[0] <= float(state["s"].abs().min()) <= float(state["s"].abs().max()) <= SIZES[1]
        )
        assert int((state["p"] > 1).sum()) >= max(1, count // 4)


def test_variances_are_positive_and_reach_far_from_1():
    state = {"n.running_var": torch.ones(256)}
    perturb(state, frozenset(state), torch.Generator().manual_seed(1))
    bits = state["n.running_var"].log2()
    assert -VARIANCE_BITS <= float(bits.min()) < -5
    assert 5 < float(bits.max()) <= VARIANCE_BITS


@pytest.mark.parametrize("body", ["torch.sqrt(self.w) * x", "torch.log(self.w) + x"])
def test_scales_keep_their_sign_where_the_reference_needs_it_and_a_note_says_so(body):
    reference = build(body, ROWS, "self.w = torch.nn.Parameter(torch.ones(1))")
    assert {"normal", "large"} <= set(reference.profiles)
    assert reference.reach.wide == set()
    assert any("'normal' leaves scales their sign" in note for note in reference.notes)
    assert torch.equal(reference.draw(1, "large").state["w"], torch.ones(1))
    assert float(reference.draw(3, "normal").state["w"].min()) > 0
    signed = build("self.w * x", ROWS, "self.w = torch.nn.Parameter(torch.ones(1))")
    assert {"normal", "large"} <= signed.reach.wide


def test_weights_keep_their_signs_where_they_need_not_lose_them():
    for body, init in (
        ("self.c(x)", UNBIASED),  # no extremum
        ("self.c(x).amax(1)", LINEAR),  # large biases show it
        ("self.c(x.amax(1, keepdim=True).expand(-1, 96))", UNBIASED),  # it shows ahead of it
    ):
        reference = build(body, ROWS, init)
        assert not reference.reach.positive_weights
        assert float(reference.draw(1, "far").state["c.weight"].min()) < 0
    reference = build("self.c(x).amax(1)", ROWS, UNBIASED)
    assert reference.rigour("far", 0) is Rigour.FULL
    assert float(reference.draw(1, "far").state["c.weight"].min()) >= 0
    assert float(reference.draw(1, "opposed").state["c.weight"].min()) < 0


def test_small_biases_are_taken_only_where_large_ones_show_nothing():
    assert build("self.c(x).amax(1)", ROWS, LINEAR).reach.bias[0] == 256
    assert build("torch.sigmoid(self.c(x).amax(1))", ROWS, LINEAR).reach.bias[0] == 4
    assert "biased" not in build("torch.relu(self.c(x)).amax(1) * 0", ROWS, LINEAR).profiles


def test_tables_of_tokens_get_values_and_a_padding_stays_0():
    padded = "self.e = torch.nn.Embedding(90, 64, padding_idx=7)"
    reference = build("self.e(x) * 2", TOKENS, padded)
    for profile in ("normal", "positive_mean", "large", "far"):
        assert profile in reference.profiles
        table = reference.draw(1, profile).state["e.weight"]
        assert not bool(table[7].any())
        assert bool(table[8].all())
    assert float(reference.draw(1, "far").state["e.weight"].std()) > 2.0**16
    shipped = reference.draw(1, "shipped").state["e.weight"]
    assert float(shipped.std()) == pytest.approx(1, rel=0.1)
    assert any("the inputs are indices" in note for note in reference.notes)


@pytest.mark.parametrize(
    ("body", "inputs", "init"),
    [
        ("self.e(x) + y", (TOKENS, "torch.randn(64)"), TABLE),  # y has the values
        ("self.e(x)", (TOKENS,), "self.e = torch.nn.Embedding(90, 64, max_norm=1.0)"),
        ("self.t[x]", (TOKENS,), 'self.register_buffer("t", torch.arange(90.0))'),
    ],
)
def test_other_tables_keep_their_values(body, inputs, init):
    reference = build_reference(forward(body, *inputs, init=init))
    assert reference.reach.tables == frozenset()
