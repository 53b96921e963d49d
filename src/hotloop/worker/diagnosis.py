"""Why an output is wrong, as far as the output itself tells: the details of the evidence.

Runs only for an output that has failed its gate, on the device, without a call of the candidate.
Safe to show a model: positions, a few values, ratios and errors relative to eager's own; no seeds,
no limits of the gate. What is told of held-out sizes is decided by who calls (`workload_of`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hotloop.core.problem import Problem, ProblemKind, Role
from hotloop.core.verdict import CaseResult
from hotloop.worker import attention_guesses
from hotloop.worker.compare import Bound, unravel
from hotloop.worker.error_law import describe_law
from hotloop.worker.error_stats import error_stats, tile_counts
from hotloop.worker.provenance import find_origin
from hotloop.worker.reference import Draw, Reference
from hotloop.worker.wrong_region import Compared, compare_closely, describe_region, pick

SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong output of one call, and what belongs there."""

    case: CaseResult
    output: Tensor
    golden: Tensor
    bound: Bound
    reference: Reference | None = None
    draw: Draw | None = None
    beyond: Tensor | None = None
    """`GateResult.beyond`."""

    def closely(self) -> tuple[Compared, Tensor]:
        """Return the comparison and its mask of wrong elements."""
        return compare_closely(
            self.output, self.golden, self.bound, rule=self.case.rule, beyond=self.beyond
        )


def workload_of(problem: Problem, name: str) -> dict[str, Any]:
    """Return a workload as a model may see it: of a held-out one its role alone."""
    found = next((w for w in problem.workloads if w.name == name), None)
    if found is None or found.role is Role.HELD_OUT:
        return {"role": str(Role.HELD_OUT)}
    settings = {**problem.settings, **found.settings}
    return {"role": str(found.role), "name": name, "settings": settings}


def diagnose(wrong: Wrong) -> dict[str, Any]:
    """Return what is known of a wrong output, as JSON values.

    `output`, `shape`, `total`, `mismatches`, `box`, `patterns`, `density`, `nonfinite` with
    `nonfinite_box` and `nonfinite_patterns`, `samples`, `times_eager`, and where they say something
    `times_eager_there`, `exact_there`, `ratio`, `difference`, `small`, `evenness`, `origin`,
    `mistake`, `diagonal`, `masked_rows`.
    """
    case = wrong.case
    details: dict[str, Any] = {
        "output": case.output,
        "shape": list(wrong.bound.shape),
        "total": wrong.output.numel(),
        "rule": case.rule,
    }
    if case.rmse and case.eager_rmse:
        details["times_eager"] = case.rmse / case.eager_rmse
    compared, mask = wrong.closely()
    if wrong.beyond is not None:
        details |= _there(wrong, wrong.beyond)
    count = int(mask.sum().item())
    details["mismatches"] = count
    positions = pick(mask)
    if count:
        region = describe_region(mask, compared.shape)
        details |= region
        details["density"] = _density(count, region)
        details |= _nonfinite(wrong, compared)
    details["samples"] = [_sample(i, wrong) for i in _spread(positions, case, wrong.bound)]
    if not details.get("nonfinite"):
        details |= describe_law(compared, positions)
        details |= _origin(wrong, compared, positions)
    return details


def _there(wrong: Wrong, beyond: Tensor) -> dict[str, Any]:
    """Return by how many times what is usual the tiles that failed are off: the middle one's.

    Usual is what the envelope is off there, what it is off in tiles of values of that size, or the
    rounding, whichever is the most.
    """
    bound = wrong.bound
    counts = tile_counts(bound.count, bound.envelope_tile)
    of_size = bound.law.typical(bound.golden_tile).square() * counts
    usual = torch.maximum(torch.maximum(bound.envelope_tile, bound.floor_tile), of_size)[beyond]
    errors = error_stats(wrong.output, wrong.golden).tile_sum_sq[beyond]
    times = float((errors / usual).sqrt().median().item())
    return {"times_eager_there": times} if math.isfinite(times) else {"exact_there": True}


def _density(count: int, region: dict[str, Any]) -> float:
    """Share of wrong elements in the box."""
    inside = 1
    for first, last in region.get("box", []):
        inside *= last - first + 1
    return count / inside


def _nonfinite(wrong: Wrong, compared: Compared) -> dict[str, Any]:
    if not compared.got.dtype.is_floating_point:
        return {}
    broken = ~torch.isfinite(compared.got)
    count = int(broken.sum().item())
    if not count:
        return {}
    told = describe_region(broken, compared.shape)
    details: dict[str, Any] = {
        "nonfinite": count,
        "nan": int(torch.isnan(compared.got).sum().item()),
        **{f"nonfinite_{k}": v for k, v in told.items()},
    }
    if _is_attention(wrong.reference) and wrong.draw is not None:
        with _bound(wrong):
            masked = attention_guesses.masked_rows(wrong.reference, compared, pick(broken))
        details |= {"masked_rows": True} if masked else {}
    return details


def _origin(wrong: Wrong, compared: Compared, positions: Tensor) -> dict[str, Any]:
    if not positions.numel():
        return {}
    inputs: Sequence[Any] = wrong.draw.inputs if wrong.draw is not None else ()
    origin = find_origin(compared, positions, inputs)
    if origin is not None:
        return {"origin": origin}
    if wrong.draw is None or not _is_attention(wrong.reference):
        return {}
    with _bound(wrong):
        mistake = attention_guesses.guess_mistake(wrong.reference, wrong.draw, compared, positions)
    return {"mistake": mistake} if mistake is not None else {}


def _is_attention(reference: Reference | None) -> bool:
    return reference is not None and reference.loaded.problem.kind is ProblemKind.ATTENTION


def _bound(wrong: Wrong) -> Any:
    """Let the modifications see the draw's captured tensors, in float64."""
    reference: Any = wrong.reference
    return reference.wide(wrong.draw.state) if wrong.draw is not None else nullcontext()


def _spread(positions: Tensor, case: CaseResult, bound: Bound) -> list[int]:
    """Return the worst position and others spread evenly over the wrong ones."""
    worst = 0
    for size, at in zip(bound.shape, case.worst_index, strict=True):
        worst = worst * size + at
    count = positions.numel()
    chosen = [int(positions[k * (count - 1) // (SAMPLES - 1)].item()) for k in range(SAMPLES)] if (
        count
    ) else []  # fmt: skip
    others = [p for p in dict.fromkeys(chosen) if p != worst]
    return [worst, *others][:SAMPLES]


def _sample(flat: int, wrong: Wrong) -> dict[str, Any]:
    got = wrong.output.reshape(-1)[flat].item()
    expected = wrong.golden.reshape(-1)[flat].item()
    return {
        "index": list(unravel(flat, wrong.bound.shape)),
        "got": f"{got:.6g}" if isinstance(got, float) else str(got),
        "expected": f"{expected:.6g}" if isinstance(expected, float) else str(expected),
    }
