"""Say that an output is wrong: the evidence of INCORRECT_NUMERICAL, message and details.

Safe to show a model: positions, a few values and errors relative to eager's own; no seeds, no
thresholds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

import torch

from hotloop.core.verdict import CaseResult, Evidence
from hotloop.errors import HotloopError
from hotloop.worker.compare import Bound
from hotloop.worker.diagnosis import Wrong, diagnose
from hotloop.worker.row_errors import PART


def describe_mismatch(wrong: Wrong) -> Evidence:
    """Return the evidence of one output that did not pass its gate."""
    try:
        details = diagnose(wrong)
    except (HotloopError, RuntimeError) as exc:  # out of memory, a modification that cannot run
        print(f"hotloop judge: no diagnosis: {exc}", file=sys.stderr, flush=True)
        if wrong.output.is_cuda:
            torch.cuda.empty_cache()
        details = _bare(wrong)
    count = int(details.get("mismatches", wrong.case.mismatches))
    return Evidence(
        kind="nonfinite" if wrong.case.rule == "nonfinite" else "wrong_values",
        message=_finite_words(wrong) or _message(wrong.case, wrong.bound, count, details),
        details=details,
    )


def _bare(wrong: Wrong) -> dict[str, Any]:
    case = wrong.case
    return {
        "output": case.output,
        "shape": list(wrong.bound.shape),
        "mismatches": case.mismatches,
        "rule": case.rule,
    }


def _finite_words(wrong: Wrong) -> str | None:
    """Return the message of a NaN or Inf on one side alone; None for other rules."""
    case = wrong.case
    if case.rule != "nonfinite":
        return None
    where = f"{case.output} on {case.profile!r} inputs"
    if bool(torch.isfinite(wrong.golden[case.worst_index])):
        return f"{where}: NaN or Inf where the reference is finite, first at {case.worst_index}"
    return (
        f"{where}: another value than the reference's NaN or Inf, which has to be the same, first "
        f"at {case.worst_index}"
    )


def _message(case: CaseResult, bound: Bound, count: int, details: Mapping[str, Any]) -> str:
    total = math.prod(bound.shape)
    where = f"{case.output} on {case.profile!r} inputs"
    if case.rule == "exact":
        rule = (
            "integer-valued inputs must give exact results"
            if case.profile == "integers"
            else "whole numbers have to be the same, but for what rounding moves over a step"
        )
        return f"{where}: {count} of {total} elements differ; {rule}; worst at {case.worst_index}"
    if small := details.get("small"):
        return (
            f"{where}: small values are lost beside large ones; {count} of {total} elements, of "
            f"{small['size']:.2g} times the output's RMS, are off by {small['error']:.2g} times "
            f"their own; worst at {case.worst_index}"
        )
    if case.rule == PART:
        return (
            f"{where}: rows of small values are less exact than in PyTorch, which large ones in "
            f"other rows hide; {count} of {total} elements are far off; worst at {case.worst_index}"
        )
    there = details.get("times_eager_there")
    if there or details.get("exact_there"):
        usual = f"{there:.3g} times the usual" if there else "where there should be none"
        return (
            f"{where}: in parts of the output the error is too large for the values there, "
            f"{usual}; {count} of {total} elements are far off; worst at {case.worst_index}"
        )
    ratio = case.rmse / case.eager_rmse if case.rmse and case.eager_rmse else None
    relation = f", {ratio:.3g} times eager's own" if ratio else ""
    relative = case.rmse / case.golden_rms if case.rmse and case.golden_rms else None
    share = f" ({relative:.2g} of the output's RMS)" if relative else ""
    return (
        f"{where}: the error is too large{relation}{share}; {count} of {total} elements "
        f"are far off; worst at {case.worst_index}"
    )
