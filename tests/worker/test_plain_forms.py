"""Kernels that write functions plainly are inside the envelope; half precision is not."""

import pytest
import torch
from problem_files import forward

from hotloop.worker import plain_forms
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.reference import build_reference

F = torch.nn.functional
FORMS = {
    "torch.nn.functional.elu(x)": lambda x: torch.where(x > 0, x, torch.exp(x) - 1),
    "torch.nn.functional.selu(x)": lambda x: (
        1.0507009873554805 * torch.where(x > 0, x, 1.6732632423543772 * (torch.exp(x) - 1))
    ),
    "torch.tanh(x)": lambda x: 2 / (1 + torch.exp(-2 * x)) - 1,
    "torch.expm1(x)": lambda x: torch.exp(x) - 1,
    "torch.log1p(x)": lambda x: torch.log(1 + x),
}


def bound_on(body, profile):
    reference = build_reference(forward(body, "torch.rand(64, 512)"))
    draw = reference.draw(3, profile)
    golden = reference.golden(draw)[0]
    members = [m[0] for m in reference.envelope(draw).values()]
    return draw.inputs[0], golden, make_bound(golden, members, torch.float32, exact=False)


@pytest.mark.parametrize("body", FORMS)
def test_a_plain_form_passes_on_small_values_and_half_precision_does_not(body):
    x, golden, bound = bound_on(body, "small")
    assert gate(FORMS[body](x), golden, bound).passed
    assert not gate(golden.half().float(), golden, bound).passed
    assert not gate(golden.bfloat16().float(), golden, bound).passed


@pytest.mark.parametrize(
    ("plain", "library"),
    [
        (plain_forms.expm1, torch.expm1),
        (lambda x: plain_forms.log1p(x.abs()), lambda x: torch.log1p(x.abs())),
        (plain_forms.tanh, torch.tanh),
        (plain_forms.softplus, F.softplus),
        (lambda x: plain_forms.softplus(x, 2, 10), lambda x: F.softplus(x, 2, 10)),
        (plain_forms.mish, F.mish),
        (plain_forms.elu, F.elu),
        (  # divided by the scales of the 1 that is taken off
            lambda x: plain_forms.elu(x, 1.5, 2, 0.5) / 3,
            lambda x: torch.ops.aten.elu(x, 1.5, 2, 0.5) / 3,
        ),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_plain_forms_are_the_same_functions(plain, library, dtype):
    x = torch.linspace(-40, 40, 4001).to(dtype)
    expected, got = library(x.double()), plain(x)
    assert got.dtype is dtype
    unit = 2 * torch.finfo(torch.float32).eps * x.double().abs().clamp(min=1)
    limit = 2 * torch.finfo(dtype).eps * expected.abs() + unit
    assert bool(((got.double() - expected).abs() <= limit).all())
