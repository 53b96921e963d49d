"""By how much an output is wrong: one ratio, one difference, or an error that is everywhere small.

Laws are read from a random part of the wrong elements. A law is told with the share of elements
that it explains within the gate's own bounds, so that a reader can tell a law from a tendency.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from hotloop.worker.wrong_region import MAX_PICKED, Compared

MIN_ELEMENTS = 16
NEAR_ZERO_FRAC = 0.5
"""Elements under half of the golden's RMS say little about a ratio."""
SMALL_FRAC = 1e-2
"""Wrong elements of a size under this share of the golden's RMS are small ones among large ones:
what is lost there does not show in the error of the whole."""
MAX_LIMIT_FRAC = 0.1
"""A law is believed only where the bounds are under a tenth of what it corrects."""


def describe_law(compared: Compared, wrong: Tensor) -> dict[str, Any]:
    """Return `ratio`, `difference` {median, spread, share}, `small` {size, error} and `evenness`.

    Those that apply; `size` is that of the wrong elements beside the golden's RMS, `error` their
    RMS error beside their own size.

    Args:
        compared: the output and its golden.
        wrong: flat positions of wrong elements, a random part or all.
    """
    details: dict[str, Any] = {}
    is_of_wrong = wrong.numel() >= MIN_ELEMENTS
    got, golden, limits = _values(compared, wrong if is_of_wrong else _everywhere(compared))
    if got.numel() >= MIN_ELEMENTS:
        details["small"] = _small(got, golden, compared.bound.golden_rms) if is_of_wrong else None
        details["ratio"] = _ratio(got, golden, limits, compared.bound.golden_rms)
        details["difference"] = _difference(got, golden, limits)
    details["evenness"] = _evenness(compared)
    return {key: value for key, value in details.items() if value is not None}


def _values(compared: Compared, flat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    got = compared.got[flat].to(torch.float64)
    golden = compared.golden[flat].to(torch.float64)
    kept = torch.isfinite(got)
    return got[kept], golden[kept], compared.limits(flat)[kept]


def _everywhere(compared: Compared) -> Tensor:
    count = compared.got.numel()
    if count <= MAX_PICKED:
        return torch.arange(count, device=compared.got.device)
    gen = torch.Generator(device=compared.got.device).manual_seed(2)
    return torch.randint(count, (MAX_PICKED,), generator=gen, device=compared.got.device)


def _small(got: Tensor, golden: Tensor, rms: float) -> dict[str, float] | None:
    size = float(golden.square().mean().sqrt().item())
    if not 0 < size <= SMALL_FRAC * rms:
        return None
    error = float((got - golden).square().mean().sqrt().item())
    if error > size:
        return None  # not lost: other values stand there
    return {"size": size / rms, "error": error / size}


def _ratio(got: Tensor, golden: Tensor, limits: Tensor, rms: float) -> dict[str, float] | None:
    large = golden.abs() >= NEAR_ZERO_FRAC * rms
    if int(large.sum().item()) < MIN_ELEMENTS or not rms:
        return None
    if _is_constant(golden[large]):
        return None  # then any constant output has one ratio
    ratios = got[large] / golden[large]
    median, spread = _middle(ratios)
    left = (got - median * golden).abs()
    share = float((left <= limits * max(1.0, abs(median))).to(torch.float64).mean().item())
    return {"median": median, "spread": spread, "share": share}


def _difference(got: Tensor, golden: Tensor, limits: Tensor) -> dict[str, float] | None:
    if _is_constant(golden):
        return None
    median, spread = _middle(got - golden)
    if not float(limits.max().item()) <= MAX_LIMIT_FRAC * abs(median):
        return None
    share = float(((got - golden - median).abs() <= limits).to(torch.float64).mean().item())
    return {"median": median, "spread": spread, "share": share}


def _middle(values: Tensor) -> tuple[float, float]:
    """Return the median, and half the width of the middle 90 %."""
    marks = torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64, device=values.device)
    low, median, high = torch.quantile(values, marks).tolist()
    return median, (high - low) / 2


def _is_constant(golden: Tensor) -> bool:
    size = float(golden.abs().max().item())
    return float((golden.max() - golden.min()).item()) <= 0.05 * size


def _evenness(compared: Compared) -> float | None:
    """Median of the error over its root mean square, over all elements.

    0.67 for a normal law, near 0 where few elements carry the error.
    """
    got, golden, _ = _values(compared, _everywhere(compared))
    error = (got - golden).abs()
    if error.numel() < MIN_ELEMENTS:
        return None
    rms = float(error.square().mean().sqrt().item())
    return float(error.median().item()) / rms if rms else None
