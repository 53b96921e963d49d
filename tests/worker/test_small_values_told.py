"""Small values that are lost beside large ones are told as that, and other errors are not."""

from __future__ import annotations

import torch
from torch import Tensor

from hotloop.core.verdict import Evidence
from hotloop.worker.cases import Case
from hotloop.worker.compare import gate, make_bound
from hotloop.worker.correctness import case_result
from hotloop.worker.diagnosis import Wrong
from hotloop.worker.mismatch import describe_mismatch

SMALL = 2.0**-28


def _golden(small: float) -> Tensor:
    """Samples of which the first two are small."""
    gen = torch.Generator().manual_seed(0)
    golden = torch.randn((8, 512, 128), generator=gen, dtype=torch.float64)
    golden[:2] *= small
    return golden


def _near(golden: Tensor, seed: int) -> Tensor:
    gen = torch.Generator().manual_seed(seed)
    noise = torch.randn(golden.shape, generator=gen, dtype=torch.float64)
    return (golden * (1 + 1e-6 * noise)).float()


def _told(golden: Tensor, output: Tensor) -> Evidence:
    bound = make_bound(golden, [_near(golden, 2), _near(golden, 3)], torch.float32, exact=False)
    assert gate(_near(golden, 1), golden, bound).passed
    result = gate(output, golden, bound)
    assert not result.passed
    case = case_result(Case("nominal", "negative", 7, (bound,)), 0, bound, result)
    return describe_mismatch(Wrong(case, output, golden, bound))


def test_what_one_scale_for_all_samples_loses_is_small():
    golden = _golden(SMALL)
    step = 2.0**-24
    output = torch.where(golden.abs() < 0.01, (golden / step).round() * step, golden)
    evidence = _told(golden, output.float())
    assert "small values are lost beside large ones" in evidence.message
    assert "eager" not in evidence.message  # of the whole, the error is as small as eager's
    small = evidence.details["small"]
    assert 0.3 < small["size"] / SMALL < 3
    assert small["error"] > 0.5


def test_an_error_of_large_values_is_not():
    golden = _golden(1.0)
    evidence = _told(golden, golden.to(torch.bfloat16).float())
    assert "small" not in evidence.details
    assert "times eager's own" in evidence.message
