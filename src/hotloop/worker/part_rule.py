"""Parts: rows of a small output that hold values far apart are judged each by their own size.

The inputs of the profile `negative` have parts of very different scales (`apart.py`). In an output
of more than some ten tiles each part has tiles of its own. In a smaller one they share a tile, and
rows 16 times as large as usual set the limit for rows that are 2**-28 of them. So where rows of the
output belong to parts of an input, each part whose results are as small as its inputs are has

    RMSE(c - g)  <=  F max(E_p, R g_p) + floor_p
    max|c - g|   <=  F max(M_p, R' g_p) + floor_p

E_p  RMSE of the envelope's worst member in the part (of the worst in each row: it is not below)
R    E_q / g_q at most in the parts that are not smaller: an error that grows with what is summed is
     as large a share of a small result. So a few rows, or rows that share one error, have the luck
     of all. M_p, R': the same of the largest error
F    10.5, the most that luck may do to a tile (`tile_law.py`): a part may have few elements, whose
     errors need not be independent. Rows that lose bits to their neighbours are off by hundreds
floor_p  4 units in the last place, or the rounding of narrow types; 2**-17 of each element where
     there are powers, which lose so much of small numbers if they go by a logarithm

A part of zeros alone has the smallest limit of the others. A part is left to the other rules where
it has under 16 elements, or results that are not as small as inputs to the power of 1/2 to 4: sums
that cross the parts, biases, functions that are not small near 0, and those that fade far from it,
such as `log(1 + exp(-x))`, where an error of one unit in the last place of 1 is no fault. So is
every part where the reference has functions with a scale of their own (`scale_free.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from hotloop.core.verdict import Rigour
from hotloop.worker import apart
from hotloop.worker.bound import FLOOR_ULPS, WIDE, Bound
from hotloop.worker.draw import Draw, Reference
from hotloop.worker.inputs import renews
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.row_errors import errors_by_row
from hotloop.worker.scale_free import is_scale_free
from hotloop.worker.tile_law import luck

PROFILE = "negative"
LEAST = 16
"""Elements of a part that is judged by itself."""
SMALL_FRAC = 1.0 / 8.0
"""Of the largest part: smaller ones are hidden by it."""
POWER_SHARE = 2.0**-17
"""Of a power's result that it may always be off by: log2(2**-28) is off by 28 times 2**-24."""
DEGREES = 0.5, 4.0
"""Powers of the inputs that results grow with: of a norm 1, of a variance 2."""
FACTOR = 2.0 * luck(1)
Pair = tuple[float, float]
"""A root mean square error and a largest error."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an output."""

    factor: float
    """Size of what its inputs are multiplied by."""
    count: int
    golden: float
    """Root mean square."""
    errors: Pair
    """Of what is judged."""
    envelope: Pair
    floor: Pair
    worst: int
    """Flat index in the output of the largest error of what is judged."""


def parts_beyond(
    output: Tensor, golden: Tensor, bound: Bound, *, reference: Reference, draw: Draw
) -> list[int]:
    """Return the worst element of each part that is beyond its own limits, the worst part first.

    None where the output has no parts, or another rigour than all rules.

    Args:
        output: a candidate's.
        golden: float64, of the same shape.
        bound: of the output.
        reference: of the problem.
        draw: whose inputs the output belongs to.
    """
    if bound.rows is None or bound.exact or bound.rigour is not Rigour.FULL:
        return []
    for size in _input_sizes(reference, draw, bound.dtype):
        if len(bound.rows.sum_sq) % size == 0:
            assert isinstance(reference, ModelReference)
            return beyond_limits(measured(output, golden, bound, size, reference))
    return []


def _input_sizes(reference: Reference, draw: Draw, dtype: torch.dtype) -> list[int]:
    """Return of how many slices the inputs are that have parts; none where no part is judged."""
    if draw.profile != PROFILE or not isinstance(reference, ModelReference):
        return []
    if not is_scale_free(reference.census.names, dtype):
        return []
    sizes = []
    for place, (value, law) in enumerate(zip(draw.inputs, reference.sources, strict=True)):
        is_free = renews(law, keeps=False) and not reference.reach.keeps(place, PROFILE)
        dim = apart.cut(value) if is_free and isinstance(value, Tensor) else None
        sizes += [value.shape[dim]] if dim is not None else []
    return sizes


def measured(
    output: Tensor, golden: Tensor, bound: Bound, size: int, reference: ModelReference
) -> list[Part]:
    """Return the parts of an output.

    Args:
        output: a candidate's.
        golden: float64, of the same shape.
        bound: of the output, with the errors of its rows.
        size: slices of the input; the output's rows are as many, or a multiple.
        reference: whose inputs have parts.
    """
    assert bound.rows is not None
    errors = errors_by_row(output, golden, size)
    values = golden.double().abs().reshape(size, -1).nan_to_num(0.0, posinf=0.0)
    floor = _floor(golden, bound.dtype, has_powers="pow" in reference.census.names)
    floor = floor.reshape(size, -1)
    sum_sq, largest = (t.reshape(size, -1) for t in (bound.rows.sum_sq, bound.rows.largest))
    columns = errors.shape[1]
    parts: list[Part] = []
    for start, end, factor in apart.pieces(size, reference.reach.factors):
        count = (end - start) * columns
        if not count:
            continue
        rows = slice(start, end)
        parts.append(
            Part(
                factor=abs(factor),
                count=count,
                golden=_rms(values[rows]),
                errors=(_rms(errors[rows]), float(errors[rows].max())),
                envelope=(math.sqrt(float(sum_sq[rows].sum()) / count), float(largest[rows].max())),
                floor=(_rms(floor[rows]), float(floor[rows].max())),
                worst=start * columns + int(errors[rows].argmax()),
            )
        )
    return parts


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def _floor(golden: Tensor, dtype: torch.dtype, *, has_powers: bool) -> Tensor:
    """Return what each element may always be off by."""
    if dtype in WIDE:
        floor = golden.double().abs() * (FLOOR_ULPS * torch.finfo(dtype).eps)
    else:
        floor = (golden.to(dtype).double() - golden).abs()
    if has_powers:
        floor += golden.double().abs() * POWER_SHARE
    return floor.nan_to_num(0.0, posinf=0.0)


def beyond_limits(parts: list[Part]) -> list[int]:
    """Return the worst element of each part that is beyond its limits, the worst part first."""
    shares = [(used, part.worst) for used, part in used_limits(parts) if not used <= 1.0]
    return [worst for _, worst in sorted(shares, key=lambda share: share[0], reverse=True)]


def used_limits(parts: list[Part]) -> list[tuple[float, Part]]:
    """Return the parts that are judged by themselves, each with its error as a share of its limit.

    Of the two limits that which is nearer.
    """
    top = max((part.golden for part in parts), default=0.0)
    most = max((part.factor for part in parts), default=0.0)
    if not top:
        return []
    shares = (0.0, 0.0)
    for part in parts:
        if part.golden >= SMALL_FRAC * top:
            rmse, largest = part.envelope
            shares = _larger(shares, (rmse / part.golden, largest / part.golden))
    small = [(part, _limits(part, shares)) for part in parts if _is_small(part, top, most)]
    least = (math.inf, math.inf)
    for part, limits in small:
        if part.golden:
            least = min(least[0], limits[0]), min(least[1], limits[1])
    used = []
    for part, limits in small:
        if part.count >= LEAST:
            allowed = limits if part.golden else _larger(limits, least)
            pairs = zip(part.errors, allowed, strict=True)
            used.append((max(_share(error, limit) for error, limit in pairs), part))
    return used


def _share(error: float, limit: float) -> float:
    if limit:
        return error / limit
    return math.inf if error else 0.0


def _larger(a: Pair, b: Pair) -> Pair:
    return max(a[0], b[0]), max(a[1], b[1])


def _is_small(part: Part, top: float, most: float) -> bool:
    """Whether the results of a part are as small as its inputs."""
    if part.factor >= most:
        return False
    share, (least, highest) = part.factor / most, DEGREES
    return SMALL_FRAC * share**highest * top <= part.golden <= min(SMALL_FRAC, share**least) * top


def _limits(part: Part, shares: Pair) -> Pair:
    """Return what the RMSE and the largest error of a part may be; 0 for zeros alone."""
    rmse, largest = (
        FACTOR * max(error, share * part.golden) + floor
        for error, share, floor in zip(part.envelope, shares, part.floor, strict=True)
    )
    return rmse, largest
