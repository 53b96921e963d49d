"""What wrong values usually mean, the most telling first; nothing where the evidence is silent.

What the judge has recognised (`mistakes.py`, `probed.py`) is a statement; a ratio, a place or an
even error is a hint, and is worded as one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from hotloop.core.verdict import CaseResult
from hotloop.prompts.mistakes import describe_mistake, describe_origin
from hotloop.prompts.numerics import Axis, Law, NumericEvidence, number
from hotloop.prompts.probed import describe_probe

TILE = 128
"""The largest tile side that is usual; samples within one such square are called one tile."""
RATIO_SPREAD_FRAC = 0.01
"""Ratios within 1 % of each other are one ratio: 16-bit outputs carry 2 to 3 digits."""
EXPLAINED_FRAC = 0.99
NEAR_ONE = 0.02
"""A ratio so near 1 is rounding, unless it varies by less than `SHARP` of what it is off by."""
SHARP, COUNTED = 0.05, 0.01
"""`COUNTED`: how near n / (n - 1) has to be, of what it is off by."""
MIN_EVENNESS = 0.15
"""Rounding errors are spread (0.67 for a normal law); those of a wrong place are near 0."""
EVEN = 0.4
MAX_TOLD = 2
TF32_ERROR_FRAC = (2e-5, 1e-3)
"""Root mean square error over the output's own, where operands of a product are rounded to TF32:
2^-11 each at most, so some 1e-4; cancelling sums make it more."""
FLOAT32_ERROR_FRAC = 3e-6
"""The same where everything is float32: 2^-24 each, and the rounding of long sums."""

KNOWN_RATIOS: tuple[tuple[float, str], ...] = (
    (1.4427, "log2(e): a factor between exp and exp2 is applied twice or not undone"),
    (0.6931, "ln(2): the factor log2(e) between exp and exp2 is missing"),
    (2.0, "a factor of two: something is added or counted twice"),
    (0.5, "a factor of one half: half of the terms are missing, or a scale is applied twice"),
    (-1.0, "the sign is turned round"),
)


def meanings(
    evidence: NumericEvidence, case: CaseResult | None, axis: Axis, *, is_attention: bool = False
) -> list[str]:
    """Return at most `MAX_TOLD` sentences on the cause; empty when the evidence carries none."""
    certain = (
        describe_mistake(evidence.mistake)
        or describe_origin(evidence.origin, axis)
        or describe_probe(evidence.probe, is_attention=is_attention)
    )
    place = _last_block(evidence, axis) or _one_tile(evidence) or _strided(evidence, axis)
    if certain:
        return [certain, place] if place else [certain]
    found = [
        _small(evidence),
        _nonfinite(evidence, case),
        _constant_ratio(evidence) or _zeros(evidence) or _constant_difference(evidence),
        place,
    ]
    told = [text for text in found if text]
    if not told:
        causes = (_tf32(evidence, case) or _precision(evidence, case), _unrelated(case))
        told = [text for text in causes if text]
    return told[:MAX_TOLD]


def _small(evidence: NumericEvidence) -> str | None:
    if evidence.small is None:
        return None
    return (
        "Values of very different size meet there and the small ones are lost: by one scale, or "
        "one power of two in float16 or in split parts, for a tile, a batch or a whole tensor, "
        "where each row or sample needs its own (or products in full float32)."
    )


def _nonfinite(evidence: NumericEvidence, case: CaseResult | None) -> str | None:
    if evidence.masked_rows:
        return (
            "NaN stands in rows in which every key is masked: their largest score is -inf, and "
            "-inf - (-inf) is NaN. Such rows must come out as 0."
        )
    got = [number(s.got) for s in evidence.samples]
    is_nan = bool(got) and all(v is not None and math.isnan(v) for v in got)
    if not is_nan and not evidence.nonfinite and (case is None or case.rule != "nonfinite"):
        return None
    if evidence.nonfinite and evidence.nan == 0:
        return "Inf: look for exp of a large number, a division by 0, or sums beyond float16."
    return (
        "NaN or Inf: an element that is never written stays NaN; else look for exp of a large "
        "number, 0 / 0, or inf - inf in a row where everything is masked."
    )


def _constant_ratio(evidence: NumericEvidence) -> str | None:
    ratio = _one_ratio(evidence)
    if ratio is None or (abs(ratio - 1) < NEAR_ONE and not _is_sharp(evidence.ratio)):
        return None
    name = next((told for known, told in KNOWN_RATIOS if abs(ratio / known - 1) < 0.01), "")
    name = name or _size_ratio(ratio, evidence.shape) or _count_ratio(ratio, evidence.shape)
    known = f" ({name})" if name else ""
    shown = f"{ratio:.4g}" if abs(ratio - 1) >= NEAR_ONE else f"1 {ratio - 1:+.3g}"
    return (
        f"Off by one constant ratio: got / expected is {shown} everywhere it was looked{known}."
        " More likely a scale than an index."
    )


def _is_sharp(law: Law | None) -> bool:
    """Whether a ratio near 1 is one number: rounding spreads as far as it goes."""
    return law is not None and law.median != 1 and law.spread <= SHARP * abs(law.median - 1)


def _count_ratio(ratio: float, shape: tuple[int, ...]) -> str:
    """Return in words that a ratio is n / (n - 1) of a dimension, its root, or one over either."""
    found = [
        (abs(ratio - value) / abs(value - 1), dim)
        for dim, size in enumerate(shape)
        if size > 2
        for value in ((size / (size - 1)) ** power for power in (1, -1, 0.5, -0.5))
    ]
    off, dim = min(found, default=(1.0, 0))
    if off >= COUNTED or abs(ratio - 1) >= NEAR_ONE:
        return ""  # of few numbers any ratio is one of these
    return f"as n to n - 1, or their roots, n near {shape[dim]}: a variance may divide by either"


def _size_ratio(ratio: float, shape: tuple[int, ...]) -> str:
    for dim, size in enumerate(shape):
        for name, known in (("size", size), ("square root of the size", math.sqrt(size))):
            for told, value in ((f"the {name}", known), (f"1 / the {name}", 1 / max(known, 1))):
                if size > 2 and abs(ratio / value - 1) < 0.005:
                    return f"{told} of dimension {dim}: a scale is missing or applied twice"
    return ""


def _one_ratio(evidence: NumericEvidence) -> float | None:
    if evidence.ratio is not None:
        law = evidence.ratio
        return law.median if law.median and _is_one_ratio(law) else None
    ratios = [r for s in evidence.samples if (r := s.ratio) is not None and r != 0]
    if len(ratios) < 3 or len(ratios) < len(evidence.samples):
        return None
    middle = sorted(ratios)[len(ratios) // 2]
    close = all(abs(r / middle - 1) <= RATIO_SPREAD_FRAC for r in ratios)
    return middle if close else None


def _is_one_ratio(law: Law) -> bool:
    """Whether the ratios are one: very close, or explained by one where it is far from 1."""
    if abs(law.spread) <= RATIO_SPREAD_FRAC * abs(law.median):
        return law.share is None or law.share >= EXPLAINED_FRAC
    return (
        law.share is not None
        and law.share >= EXPLAINED_FRAC
        and law.spread <= min(0.05 * abs(law.median), 0.25 * abs(law.median - 1))
    )


def _constant_difference(evidence: NumericEvidence) -> str | None:
    law = evidence.difference
    if law is None or law.share is None or law.share < EXPLAINED_FRAC:
        return None
    if not law.median or law.spread > 0.05 * abs(law.median):
        return None
    return (
        f"Off by one constant difference: got - expected is {law.median:.4g} for all wrong "
        "elements: something is added, or left out, once for each."
    )


def _zeros(evidence: NumericEvidence) -> str | None:
    samples = evidence.samples
    if len(samples) < 3 or any(number(s.got) != 0 for s in samples):
        return None
    if any(number(s.expected) == 0 for s in samples):
        return None
    return "The worst elements are 0: masked away, or terms were never added to them."


def _last_block(evidence: NumericEvidence, axis: Axis) -> str | None:
    """All wrong indices of one dimension lie in its last block."""
    region = evidence.nonfinite_region if evidence.nonfinite else evidence.region
    for pattern in region.patterns:
        told = _last_range(pattern, axis)
        if told:
            return told
    for dim, size in enumerate(evidence.shape):
        tail = size % TILE
        if tail and size > TILE and _span(evidence, dim)[0] >= size - tail:
            return (
                f"{_which(evidence)} lie in the last partial block of {axis(dim)} (size "
                f"{size}, no multiple of {TILE}): look at the masks there."
            )
    return None


def _last_range(pattern: Mapping[str, Any], axis: Axis) -> str | None:
    dim, size, block = pattern.get("dim"), pattern.get("size"), pattern.get("block")
    first, last = pattern.get("from"), pattern.get("to")
    numbers = (dim, size, block, first, last)
    if pattern.get("kind") != "range" or not all(isinstance(n, int) for n in numbers):
        return None
    if last != size - 1 or last - first + 1 > block:  # type: ignore[operator]
        return None
    if size % block:  # type: ignore[operator]
        return (
            f"All wrong elements lie in the last partial block of {axis(dim)} "  # type: ignore[arg-type]
            f"(size {size}, no multiple of {block}): look at the masks there."
        )
    return (
        f"All wrong elements lie in the last block of {axis(dim)}: "  # type: ignore[arg-type]
        "the grid or a loop may be one step short."
    )


def _one_tile(evidence: NumericEvidence) -> str | None:
    if len(evidence.shape) < 1 or not evidence.mismatches:
        return None
    spans = [_span(evidence, dim) for dim in range(len(evidence.shape))]
    in_tile = all(hi - lo < TILE for lo, hi in spans)
    leading = all(hi == lo for lo, hi in spans[:-2])
    is_small = evidence.mismatches <= TILE * TILE and evidence.mismatches * 4 <= evidence.total
    if not (in_tile and leading and is_small and evidence.box):
        return None  # a few samples close to each other do not show that the rest is right
    where = ", ".join(f"{lo}..{hi}" for lo, hi in spans)
    return (
        f"All wrong elements lie in one tile [{where}], the rest is right: one program, or one "
        "step of its loop, uses a wrong offset or mask."
    )


def _strided(evidence: NumericEvidence, axis: Axis) -> str | None:
    for pattern in evidence.region.patterns:
        dim = pattern.get("dim")
        if pattern.get("kind") in ("every", "period") and isinstance(dim, int):
            return (
                f"The wrong elements repeat along {axis(dim)} with a fixed period, the ones "
                "between are right: look at what differs between the parts of one block."
            )
    return None


def _tf32(evidence: NumericEvidence, case: CaseResult | None) -> str | None:
    """The error is as small as TF32 makes it, nearly everywhere, and PyTorch's own is float32's."""
    if case is None or not case.rmse or case.golden_rms <= 0:
        return None
    least, most = TF32_ERROR_FRAC
    is_wide = evidence.mismatches >= 0.2 * max(evidence.total, 1) and not evidence.region.patterns
    is_exact_there = case.eager_rmse / case.golden_rms <= FLOAT32_ERROR_FRAC
    if not (least <= case.rmse / case.golden_rms <= most and is_wide and is_exact_there):
        return None
    return (
        f"Right but not exact enough: {case.rmse / case.golden_rms:.1g} of the output's size, "
        "everywhere, is the error of products whose operands are rounded to TF32. PyTorch makes "
        "this result in full float32 (its convolutions too, at these sizes): do the products in "
        '`input_precision="ieee"` or `"tf32x3"` (in CUDA: float32 FMA, or split operands). Where '
        "yours are split already, it is the tensor cores' accumulator, which truncates: add what "
        "each short piece of the sum gives to a float32 accumulator of your own."
    )


def _precision(evidence: NumericEvidence, case: CaseResult | None) -> str | None:
    if case is None or not case.rmse or case.eager_rmse <= 0 or case.golden_rms <= 0:
        return None
    times, relative = case.rmse / case.eager_rmse, case.rmse / case.golden_rms
    is_even = evidence.evenness is None or evidence.evenness >= MIN_EVENNESS
    # A larger error counts as rounding only where it is as even as rounding errors are.
    most = 0.1 if (evidence.evenness or 0.0) >= EVEN and not evidence.region.patterns else 0.02
    if not (times >= 5 and relative <= most and is_even):
        return None
    return (
        f"Right but not exact enough ({times:.0f} times eager's error, everywhere small): usually "
        "accumulation or a product in lower precision. Accumulate in float32, and look at "
        "`input_precision` of tl.dot and at casts before it."
    )


def _unrelated(case: CaseResult | None) -> str | None:
    if case is None or not case.rmse or case.golden_rms <= 0 or case.rmse < 0.5 * case.golden_rms:
        return None
    return (
        "The error is as large as the output itself: wrong indices, strides or a missing step, "
        "not rounding."
    )


def _which(evidence: NumericEvidence) -> str:
    return "All wrong elements" if evidence.box else "The worst elements"


def _span(evidence: NumericEvidence, dim: int) -> tuple[int, int]:
    if evidence.box:
        return evidence.box[dim]
    indices = [s.index[dim] for s in evidence.samples if len(s.index) > dim]
    return (min(indices), max(indices)) if len(indices) >= 3 else (-1, 1 << 62)
