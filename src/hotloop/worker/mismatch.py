"""Say where and how an output is wrong: the evidence of INCORRECT_NUMERICAL.

Safe to show a model: positions, a few values and errors relative to eager's own; no seeds, no
thresholds.
"""

from __future__ import annotations

from typing import Any

import torch

from hotloop.core.verdict import CaseResult, Evidence
from hotloop.worker.compare import Bound, unravel

SAMPLES = 5


def describe_mismatch(
    case: CaseResult, output: torch.Tensor, golden: torch.Tensor, bound: Bound
) -> Evidence:
    """Return the evidence of one output that did not pass its gate."""
    error = (output.to(torch.float64) - golden.to(torch.float64)).abs().reshape(-1)
    error = torch.where(torch.isfinite(error), error, torch.full_like(error, float("inf")))
    count = min(SAMPLES, error.numel())
    worst = torch.topk(error, count).indices.tolist()
    details: dict[str, Any] = {
        "profile": case.profile,
        "output": case.output,
        "shape": list(bound.shape),
        "mismatches": case.mismatches,
        "samples": [_sample(i, output, golden, bound) for i in worst],
    }
    return Evidence(kind=_kind(case), message=_message(case, bound), details=details)


def _kind(case: CaseResult) -> str:
    return "nonfinite" if case.rule == "nonfinite" else "wrong_values"


def _message(case: CaseResult, bound: Bound) -> str:
    total = 1
    for size in bound.shape:
        total *= size
    where = f"{case.output} on {case.profile!r} inputs"
    if case.rule == "nonfinite":
        return f"{where}: NaN or Inf where the reference is finite, first at {case.worst_index}"
    if case.rule == "exact":
        return (
            f"{where}: {case.mismatches} of {total} elements differ; integer-valued inputs must "
            f"give exact results; worst at {case.worst_index}"
        )
    ratio = case.rmse / case.eager_rmse if case.rmse and case.eager_rmse else None
    relation = f", {ratio:.3g} times eager's own" if ratio else ""
    relative = case.rmse / case.golden_rms if case.rmse and case.golden_rms else None
    share = f" ({relative:.2g} of the output's RMS)" if relative else ""
    return (
        f"{where}: the error is too large{relation}{share}; {case.mismatches} of {total} elements "
        f"are far off; worst at {case.worst_index}"
    )


def _sample(flat: int, output: torch.Tensor, golden: torch.Tensor, bound: Bound) -> dict[str, Any]:
    got = output.reshape(-1)[flat].item()
    expected = golden.reshape(-1)[flat].item()
    return {
        "index": list(unravel(flat, bound.shape)),
        "got": f"{got:.6g}" if isinstance(got, float) else str(got),
        "expected": f"{expected:.6g}" if isinstance(expected, float) else str(expected),
    }
