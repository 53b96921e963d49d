"""Whether an operation rounds to TF32 is measured on a GPU, and cut operands pass where it does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from problem_files import forward

from hotloop.problems.precision import with_precision
from hotloop.worker.cases import CaseBook
from hotloop.worker.known_case import Known
from hotloop.worker.load import load_problem
from hotloop.worker.precision import STRICT, applied
from hotloop.worker.reference import build_reference
from hotloop.worker.tf32_cut import cut_outputs, cut_to_tf32

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]
PRODUCT = forward("x @ y", "torch.randn(256, 1024)", "torch.randn(1024, 320)").problem
CONVOLUTION = forward(
    "self.n(x)", "torch.randn(16, 64, 64, 64)", init="self.n = torch.nn.Conv2d(64, 64, 3)"
).problem


def reference_of(problem, policy):
    return build_reference(load_problem(with_precision(problem, policy), device="cuda"))


@pytest.mark.parametrize("profile", ["normal", "positive_mean"])
def test_cut_products_pass_where_tf32_is_allowed(profile):
    reference = reference_of(PRODUCT, "tf32")
    book = CaseBook(reference, "nominal")
    book.add(profile, 3, cache_bytes=1 << 30)
    known = Known(reference, book.cases[0], *book.materialise(book.cases[0]))
    a, b = known.draw.inputs
    with applied(STRICT):
        assert known.is_right([cut_to_tf32(a) @ cut_to_tf32(b)])
        assert known.is_right([a @ b])
        assert not known.is_right([a.bfloat16().float() @ b.bfloat16().float()])


@pytest.mark.parametrize("policy", ["as_shipped", "strict"])
def test_products_are_not_cut_where_it_is_not_allowed(policy):
    reference = reference_of(PRODUCT, policy)
    assert cut_outputs(reference, reference.draw(3, "normal")) is None


def test_convolutions_are_cut_where_eager_rounds_them():
    reference = reference_of(CONVOLUTION, "as_shipped")
    draw = reference.draw(3, "normal")
    cut = cut_outputs(reference, draw)
    assert (cut is not None) == bool(reference.eager_uses_tf32(draw))
    strict = reference_of(CONVOLUTION, "strict")
    assert cut_outputs(strict, strict.draw(3, "normal")) is None
    if cut is not None:
        (x,), (weight, bias) = draw.inputs, draw.state.values()
        with applied(STRICT):
            expected = torch.nn.functional.conv2d(cut_to_tf32(x), cut_to_tf32(weight), bias)
        assert torch.allclose(cut[0], expected, rtol=1e-4, atol=1e-4)
