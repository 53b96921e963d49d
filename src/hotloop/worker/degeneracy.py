"""Degeneracy: problems on which a speed-up says nothing, because a constant would pass.

Judged on the values that the file ships, which are the ones that are timed. A problem with a reason
here is still checked and reported, but not ranked: the audit (`audit.py`) takes the reasons over,
and decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hotloop.worker.draw import Draw, Outputs
from hotloop.worker.module_runner import tensors_of
from hotloop.worker.pieces import PIECE
from hotloop.worker.soundness import check_sound

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference

CONSTANT_ERRORS = 10.0
"""A spread below this many times eager's own error lets a constant pass the gate."""
CONSTANT_FRAC = 1e-6
"""A spread below this share of the RMS is a constant in float32."""
ROWS = 1 << 14
"""Rows that the per-row test looks at."""


def degenerate_reasons(reference: ModelReference, draw: Draw, eager: Outputs) -> tuple[str, ...]:
    """Return the reasons found on the nominal draw; empty when there is none.

    Raises:
        ProblemError: the reference cannot be held against anything (`soundness.py`).
    """
    check_sound(reference, draw, eager)
    reasons = []
    if _random_inside(reference, draw):
        reasons.append("forward draws random numbers: no other program can reproduce its output")
    if _same_inputs(reference, draw):
        reasons.append("get_inputs gives the same values for every seed")
    for i, (got, golden) in enumerate(zip(eager, reference.golden(draw), strict=True)):
        if golden.dtype.is_floating_point and golden.numel() > 1:
            found = _spread_reason(got, golden)
            if found is not None:
                reasons.append(f"output {i} {found}")
    return tuple(reasons)


def spread_frac(goldens: Outputs) -> dict[str, float]:
    """Return standard deviation over root mean square of each floating output that is not zero.

    Over its finite elements, a piece at a time: a golden may fill a third of a GPU.
    """
    found = {}
    for i, golden in enumerate(goldens):
        if golden.dtype.is_floating_point and golden.numel() > 1:
            count = sum(part.numel() for part in _finite_parts(golden))
            mean = sum(float(part.sum()) for part in _finite_parts(golden)) / max(count, 1)
            squares = sum(float(part.square().sum()) for part in _finite_parts(golden))
            if 0 < squares < math.inf:
                apart = sum(float((p - mean).square_().sum()) for p in _finite_parts(golden))
                found[f"output{i}"] = math.sqrt(apart / squares)
    return found


def _finite_parts(golden: Tensor) -> Iterator[Tensor]:
    """Yield the finite elements in float64."""
    for part in golden.reshape(-1).split(PIECE):
        finite = torch.isfinite(part)
        yield (part if bool(finite.all()) else part[finite]).double()


def _spread_reason(eager: Tensor, golden: Tensor) -> str | None:
    rms = float(golden.square().mean().sqrt())
    if rms == 0:
        return "is zero everywhere"
    error = float((eager.double() - golden).square().mean().sqrt())
    tolerance = max(CONSTANT_ERRORS * error, CONSTANT_FRAC * rms)
    if error > 0.1 * rms:
        return "is zero but for rounding"
    if float(golden.std(correction=0)) <= tolerance:
        return "is the same number everywhere, as far as the gate can tell"
    if golden.dim() < 2:
        return None
    rows = golden.reshape(-1, golden.shape[-1])[:ROWS]
    if rows.shape[1] > 1 and float(rows.std(dim=1, correction=0).max()) <= tolerance:
        return "is constant along its last dimension"
    batch = golden.flatten(1)
    if batch.shape[0] > 1 and float(batch.std(dim=0, correction=0).max()) <= tolerance:
        return "is the same for every element of the batch"
    return None


def _random_inside(reference: ModelReference, draw: Draw) -> bool:
    if not reference.census.seeded:
        return False
    first, second = (reference.run_with_seed(draw, draw.seed + k) for k in (0, 1))
    return not all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def _same_inputs(reference: ModelReference, draw: Draw) -> bool:
    other = reference.draw(draw.seed + 1, draw.profile)
    pairs = list(zip(tensors_of(draw.inputs), tensors_of(other.inputs), strict=True))
    return bool(pairs) and all(torch.equal(a, b) for a, b in pairs)
