"""Extrema that begin at 0 behind a bias, and weights that go through float16 as they are."""

import pytest
import torch
from problem_files import forward

from hotloop.worker import from_bias, trials
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import Rigour, gate
from hotloop.worker.opposed import SCALE
from hotloop.worker.reference import build_reference

SEEDS = range(5)
LINEAR = "self.l = torch.nn.Linear(64, 48)"


def built(body, x="torch.randn(96, 64)", init=LINEAR):
    return build_reference(forward(body, x, init=init))


def passed(reference, profile, kernel):
    """Return on how many seeds a kernel, a function of x, w and bias, passes."""
    book = CaseBook(reference, "nominal")
    for seed in SEEDS:
        book.add(profile, seed, cache_bytes=1 << 26)
    assert len(book.cases) == len(SEEDS)
    count = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        output = kernel(draw.inputs[0], draw.state["l.weight"], draw.state["l.bias"])
        count += gate(output.contiguous(), golden, case.bounds[0]).passed
    return count


def begun_at_bias(x, w, b):
    return from_bias.addmm(b, x, w.T.contiguous())


def in_parts(x, w, b):
    return sum(a @ c.T for a, c in zip(x.chunk(4, 1), w.chunk(4, 1), strict=True)) + b


def softmax_from(z, top):
    e = torch.exp(z - top)
    return e / e.sum(1, keepdim=True)


BEHIND = {
    "max": (
        "self.l(x).amax(1)",
        lambda z: z.amax(1),
        [lambda z: z.amax(1).clamp(min=0), lambda z: z.amax(1).clamp(min=-100)],
    ),
    "min": ("torch.min(self.l(x), 1)[0]", lambda z: z.amin(1), [lambda z: z.amin(1).clamp(max=0)]),
    "softmax": (
        "torch.softmax(self.l(x), 1)",
        lambda z: softmax_from(z, z.amax(1, keepdim=True)),
        [lambda z: softmax_from(z, z.amax(1, keepdim=True).clamp(min=0))],
    ),
    "logsumexp": (
        "torch.logsumexp(self.l(x), 1)",
        lambda z: torch.exp(z - z.amax(1, keepdim=True)).sum(1).log() + z.amax(1),
        [lambda z: torch.exp(z).sum(1).log()],
    ),
}


@pytest.mark.parametrize("name", BEHIND)
def test_an_extremum_that_begins_at_0_behind_a_bias_is_refused(name):
    body, right, wrong = BEHIND[name]
    reference = built(body)
    assert "biased" in reference.profiles
    assert reference.rigour("biased", 0) is Rigour.GROSS
    for product in (begun_at_bias, in_parts):
        assert passed(reference, "biased", lambda *a, p=product: right(p(*a))) == len(SEEDS)
    for fake in wrong:
        assert passed(reference, "biased", lambda *a, f=fake: f(in_parts(*a))) == 0


@pytest.mark.parametrize(
    "body",
    [
        "torch.relu(self.l(x))",
        "torch.argmax(self.l(x), 1)",  # which of two is the larger depends on rounding
        "torch.tanh(64 * self.l(x).amax(1))",  # 1 or -1 everywhere, beside small biases too
        "torch.softmax(self.l(x) @ self.l(x).T, 1) @ x if x.dim() == 3 else torch.relu(self.l(x))",
    ],
)
def test_there_are_no_large_biases_where_they_show_nothing(body):
    assert "biased" not in built(body).profiles


def test_behind_a_tanh_the_biases_are_small():
    reference = built("torch.tanh(self.l(x).amax(1))")  # beside 256 it is 1 or -1 everywhere
    assert "biased" in reference.profiles
    assert passed(reference, "biased", lambda *a: in_parts(*a).amax(1).tanh()) == len(SEEDS)
    assert not passed(reference, "biased", lambda *a: in_parts(*a).amax(1).clamp(min=0).tanh())


def test_scores_that_are_products_of_biases_are_left_alone():
    body = "torch.softmax(torch.bmm(self.l(x), self.l(x).mT), 1)"
    assert "biased" not in built(body, "torch.randn(4, 16, 64)").profiles


def test_behind_a_relu_the_biases_are_positive():
    reference = built("torch.relu(self.l(x)).amax(1)")
    assert "biased" in reference.profiles
    assert float(reference.draw(1, "biased").state["l.bias"].min()) > 200


def halves(x, w, b, *, scales_weights):
    """x @ w.T through float16 parts, each row of x after a power of two of its own."""

    def power(t):
        return torch.exp2(torch.floor(torch.log2(t.abs().amax(1, keepdim=True).clamp(min=1e-38))))

    def split(t):
        high = t.half().float()
        return high, (t - high).half().float()

    rows, columns = power(x) / 2**10, power(w) / 2**10
    if not scales_weights:
        columns = torch.ones_like(columns)
    (a, c), (d, e) = split(x / rows), split(w / columns)
    return (a @ d.T + (a @ e.T + c @ d.T)) * (rows * columns.T) + b


@pytest.mark.parametrize("name", ["sigmoid", "gelu", "relu", "tanh"])
def test_weights_through_unscaled_float16_are_refused_behind_what_saturates(name):
    act = torch.nn.functional.gelu if name == "gelu" else getattr(torch, name)
    text = "torch.nn.functional.gelu(self.l(x))" if name == "gelu" else f"torch.{name}(self.l(x))"
    reference = built(text)
    assert "opposed" in reference.profiles
    assert reference.rigour("opposed", 0) is Rigour.FULL
    for right in (in_parts, begun_at_bias, lambda *a: halves(*a, scales_weights=True)):
        assert passed(reference, "opposed", lambda *a, p=right: act(p(*a))) == len(SEEDS)
    wrong = (
        lambda *a: halves(*a, scales_weights=False),
        lambda x, w, b: x @ ((w * 2**24).round() / 2**24).T + b,
        lambda x, w, b: x.clamp(-65504, 65504) @ w.T + b,
    )
    for fake in wrong:
        assert passed(reference, "opposed", lambda *a, f=fake: act(f(*a))) == 0


def test_opposed_scales_change_no_bit_of_a_product():
    reference = built("self.l(x)", init=LINEAR.replace(")", ", bias=False)"))
    draw = reference.draw(1, "opposed")
    x, w = draw.inputs[0], draw.state["l.weight"]
    assert float(x.std()) > SCALE / 2
    (output,) = reference.eager(draw)
    assert torch.equal(output, torch.nn.functional.linear(x / SCALE, w * SCALE))
    reference.redraw_inputs(draw, 2)
    assert float(draw.inputs[0].std()) > SCALE / 2


@pytest.mark.parametrize(
    ("body", "x"),
    [
        ("x * 2", "torch.randn(96, 64)"),
        ("self.l(torch.relu(x))", "torch.randn(96, 64)"),  # not as it is
        ("self.l(x)", "torch.randn(96, 64).abs()"),
        ("self.l(x.float()).half()", "torch.randn(96, 64).half()"),
    ],
)
def test_opposed_scales_are_for_random_inputs_that_a_weight_multiplies(body, x):
    assert "opposed" not in built(body, x).profiles


def test_an_input_that_is_used_elsewhere_too_is_judged_where_the_reference_bears_it(monkeypatch):
    assert "opposed" in built("self.l(x) - torch.sin(x[:, :48])").profiles
    body = "torch.sin(self.l(x) + x[:, :48])"
    reference = built(body)
    assert "opposed" not in reference.profiles
    assert any("'opposed' left out: the reference itself" in note for note in reference.notes)
    monkeypatch.setattr(trials, "OPPOSED_FACTOR", 1e12)
    assert "opposed" in built(body).profiles  # nothing else kept it out


def in_float16(x):
    """Return what is left of values in float16."""
    return x.half().float()


def test_a_scale_that_only_goes_down_loses_small_inputs():
    reference = built("self.l(x)")
    assert "lowered" in reference.final_profiles
    assert passed(reference, "lowered", lambda x, w, b: x @ w.T + b) == len(SEEDS)
    assert passed(reference, "lowered", lambda x, w, b: (x * 2**20) @ (w * 2**-20).T + b) == len(
        SEEDS
    )
    unscaled = passed(
        reference, "lowered", lambda x, w, b: in_float16(x).double() @ w.T.double() + b
    )
    assert unscaled == 0


def test_without_such_products_it_is_not_run():
    assert "lowered" not in built("torch.relu(x)").final_profiles
