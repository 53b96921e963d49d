"""Wrong values in words: how many, where, how wrong, and what that usually means.

A meaning is given only where the evidence carries it, and is called a guess. Errors are told
relative to eager PyTorch's own, never to a limit. What the evidence may hold is listed in
`NumericEvidence`; each part may be missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.core.verdict import CaseResult

MAX_SAMPLES = 5
TILE = 128
"""The largest tile side that is usual; samples within one such square are called one tile."""
RATIO_SPREAD_FRAC = 0.01
"""Ratios within 1 % of each other are one ratio: 16-bit outputs carry 2 to 3 digits."""

KNOWN_RATIOS: tuple[tuple[float, str], ...] = (
    (1.4427, "log2(e): a factor between exp and exp2 is applied twice or not undone"),
    (0.6931, "ln(2): the factor log2(e) between exp and exp2 is missing"),
    (2.0, "a factor of two: something is added or counted twice"),
    (0.5, "a factor of one half: half of the terms are missing, or a scale is applied twice"),
    (-1.0, "the sign is turned round"),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One wrong element."""

    index: tuple[int, ...]
    got: str
    expected: str

    @property
    def ratio(self) -> float | None:
        """Got over expected; None when that says nothing."""
        got, expected = _number(self.got), _number(self.expected)
        if got is None or not expected or not math.isfinite(got) or not math.isfinite(expected):
            return None
        return got / expected


@dataclass(frozen=True, slots=True)
class NumericEvidence:
    """What a verdict tells about one wrong output."""

    output: str
    profile: str
    shape: tuple[int, ...]
    mismatches: int
    samples: tuple[Sample, ...]
    nonfinite: int | None
    box: tuple[tuple[int, int], ...]
    """First and last wrong index in each dimension; empty when not known."""
    ratio: tuple[float, float] | None
    """Median of got / expected over the wrong elements, and the spread around it."""

    @property
    def total(self) -> int:
        """Elements of the output; 0 when the shape is not known."""
        return math.prod(self.shape) if self.shape else 0


def read_evidence(details: Mapping[str, Any]) -> NumericEvidence:
    """Read the details of a verdict's evidence; whatever has another form is left out."""
    shape = _integers(details.get("shape"))
    box = tuple(tuple(_integers(pair)) for pair in _list(details.get("box")))
    nonfinite = details.get("nonfinite")
    return NumericEvidence(
        output=str(details.get("output", "the output")),
        profile=str(details.get("profile", "")),
        shape=shape,
        mismatches=_integer(details.get("mismatches")) or 0,
        samples=tuple(_samples(details.get("samples"), len(shape)))[:MAX_SAMPLES],
        nonfinite=_integer(nonfinite),
        box=tuple((b[0], b[1]) for b in box if len(b) == 2) if len(box) == len(shape) else (),
        ratio=_ratio(details.get("ratio")),
    )


def describe(evidence: NumericEvidence, case: CaseResult | None) -> list[str]:
    """Return sentences on how many elements are wrong, where and by how much."""
    on = f" on {evidence.profile!r} inputs" if evidence.profile else ""
    shape = f" of shape {list(evidence.shape)}" if evidence.shape else ""
    lines = [f"{evidence.output}{shape} is wrong{on}."]
    if evidence.mismatches and evidence.total:
        share = evidence.mismatches / evidence.total
        lines.append(
            f"{evidence.mismatches} of {evidence.total} elements ({_percent(share)}) are far off."
        )
    if evidence.nonfinite:
        lines.append(f"{evidence.nonfinite} elements are NaN or Inf.")
    if evidence.box:
        spans = ", ".join(f"{lo}..{hi}" for lo, hi in evidence.box)
        lines.append(f"All wrong elements lie in [{spans}].")
    lines += _relations(case)
    return lines


def sample_table(evidence: NumericEvidence) -> str:
    """Return the samples as text, one a line; empty when there are none."""
    rows = [
        f"{list(s.index)!s:>24}  got {s.got:>14}  expected {s.expected:>14}"
        for s in evidence.samples
    ]
    return "\n".join(rows)


def meanings(evidence: NumericEvidence, case: CaseResult | None) -> list[str]:
    """Return what such errors usually mean; empty when the evidence carries no guess."""
    found = [
        _nonfinite(evidence, case),
        _constant_ratio(evidence) or _zeros(evidence),
        _last_block(evidence) or _one_tile(evidence),
    ]
    told = [text for text in found if text]
    return told or [text for text in (_precision(evidence, case), _unrelated(case)) if text]


def _relations(case: CaseResult | None) -> list[str]:
    if case is None or case.rmse is None:
        return []
    lines = []
    if case.eager_rmse > 0:
        times = case.rmse / case.eager_rmse
        lines.append(f"Its error (root mean square) is {times:.3g} times that of eager PyTorch.")
    if case.golden_rms > 0:
        lines.append(f"That is {case.rmse / case.golden_rms:.2g} of the output's own size.")
    return lines


def _nonfinite(evidence: NumericEvidence, case: CaseResult | None) -> str | None:
    got = [_number(s.got) for s in evidence.samples]
    is_nan = bool(got) and all(v is not None and math.isnan(v) for v in got)
    if not is_nan and not evidence.nonfinite and (case is None or case.rule != "nonfinite"):
        return None
    return (
        "NaN or Inf: an element that is never written stays NaN; else look for exp of a large "
        "number, 0 / 0, or inf - inf in a row where everything is masked."
    )


def _constant_ratio(evidence: NumericEvidence) -> str | None:
    ratio = _one_ratio(evidence)
    if ratio is None or abs(ratio - 1) < 0.02:
        return None
    name = next((told for known, told in KNOWN_RATIOS if abs(ratio / known - 1) < 0.01), "")
    known = f" ({name})" if name else ""
    return (
        f"Off by one constant ratio: got / expected is {ratio:.4g} everywhere it was looked{known}."
        " More likely a scale than an index."
    )


def _one_ratio(evidence: NumericEvidence) -> float | None:
    if evidence.ratio is not None:
        median, spread = evidence.ratio
        return median if abs(spread) <= RATIO_SPREAD_FRAC * abs(median) and median else None
    ratios = [r for s in evidence.samples if (r := s.ratio) is not None and r != 0]
    if len(ratios) < 3 or len(ratios) < len(evidence.samples):
        return None
    middle = sorted(ratios)[len(ratios) // 2]
    close = all(abs(r / middle - 1) <= RATIO_SPREAD_FRAC for r in ratios)
    return middle if close else None


def _zeros(evidence: NumericEvidence) -> str | None:
    samples = evidence.samples
    if len(samples) < 3 or any(_number(s.got) != 0 for s in samples):
        return None
    if any(_number(s.expected) == 0 for s in samples):
        return None
    return "The worst elements are 0: masked away, or terms were never added to them."


def _last_block(evidence: NumericEvidence) -> str | None:
    """All wrong indices of one dimension lie past its last whole tile."""
    for dim, size in enumerate(evidence.shape):
        tail = size % TILE
        if tail and size > TILE and _span(evidence, dim)[0] >= size - tail:
            return (
                f"{_which(evidence)} lie in the last partial block of dimension {dim} (size "
                f"{size}, no multiple of {TILE}): look at the masks there."
            )
    return None


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


def _precision(evidence: NumericEvidence, case: CaseResult | None) -> str | None:
    if case is None or not case.rmse or case.eager_rmse <= 0 or case.golden_rms <= 0:
        return None
    times, relative = case.rmse / case.eager_rmse, case.rmse / case.golden_rms
    if not (times >= 5 and relative <= 0.02):
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


def _samples(data: object, dims: int) -> list[Sample]:
    found = []
    for item in _list(data):
        if isinstance(item, Mapping):
            index = _integers(item.get("index"))
            if len(index) == dims or not dims:
                got, expected = str(item.get("got", "")), str(item.get("expected", ""))
                found.append(Sample(index, got[:24], expected[:24]))
    return found


def _ratio(data: object) -> tuple[float, float] | None:
    if not isinstance(data, Mapping):
        return None
    median, spread = data.get("median"), data.get("spread")
    if not isinstance(median, (int, float)) or not isinstance(spread, (int, float)):
        return None
    return float(median), float(spread)


def _list(data: object) -> Sequence[Any]:
    return data if isinstance(data, (list, tuple)) else ()


def _integers(data: object) -> tuple[int, ...]:
    values = tuple(_integer(v) for v in _list(data))
    return tuple(v for v in values if v is not None) if None not in values else ()


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _percent(share: float) -> str:
    return f"{share:.2%}" if share < 0.1 else f"{share:.0%}"
