"""Wrong values in words: how many, where and how wrong.

Errors are told relative to eager PyTorch's own, never to a limit. What the evidence may hold is
listed in `NumericEvidence`; each part may be missing. What it means is said in `meanings.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.core.verdict import CaseResult
from hotloop.prompts import places
from hotloop.prompts.failing_call import values_in_words

MAX_SAMPLES = 5
Axis = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Sample:
    """One wrong element."""

    index: tuple[int, ...]
    got: str
    expected: str

    @property
    def ratio(self) -> float | None:
        """Got over expected; None when that says nothing."""
        got, expected = number(self.got), number(self.expected)
        if got is None or not expected or not math.isfinite(got) or not math.isfinite(expected):
            return None
        return got / expected


@dataclass(frozen=True, slots=True)
class Region:
    """Where some elements lie."""

    box: tuple[tuple[int, int], ...] = ()
    """First and last index in each dimension; empty when not known."""
    patterns: tuple[Mapping[str, Any], ...] = ()
    """Of each dimension that is not hit everywhere: see `places.describe_pattern`."""


@dataclass(frozen=True, slots=True)
class Law:
    """One number for all wrong elements."""

    median: float
    spread: float
    """Half the width of the middle of the distribution."""
    share: float | None = None
    """Share of the wrong elements that it explains."""


@dataclass(frozen=True, slots=True)
class Small:
    """Wrong elements that are small beside the others."""

    size: float
    """Beside the output's root mean square."""
    error: float
    """Beside their own size."""


@dataclass(frozen=True, slots=True)
class NumericEvidence:
    """What a verdict tells about one wrong output."""

    output: str
    profile: str
    shape: tuple[int, ...]
    mismatches: int
    samples: tuple[Sample, ...]
    nonfinite: int | None
    nan: int | None
    region: Region
    """Of all wrong elements."""
    nonfinite_region: Region
    ratio: Law | None
    """Of got / expected over the wrong elements."""
    difference: Law | None
    """Of got - expected."""
    small: Small | None
    there: float | None
    """How many times as far off as is usual stretches of the output are, where only some are too
    far; infinite where there should be no error."""
    evenness: float | None
    """Median error over its root mean square: near 0 where few elements carry the error."""
    diagonal: str | None
    origin: object
    mistake: object
    probe: object
    """Which elements of an input it was made from, found by calling the candidate again."""
    smaller: str
    """At which other sizes the same kernel is right and wrong, in words."""
    masked_rows: bool
    """Whether NaN stands exactly in rows in which every key is masked."""

    @property
    def box(self) -> tuple[tuple[int, int], ...]:
        """First and last wrong index in each dimension; empty when not known."""
        return self.region.box

    @property
    def total(self) -> int:
        """Elements of the output; 0 when the shape is not known."""
        return math.prod(self.shape) if self.shape else 0


def read_evidence(details: Mapping[str, Any]) -> NumericEvidence:
    """Read the details of a verdict's evidence; whatever has another form is left out."""
    shape = _integers(details.get("shape"))
    return NumericEvidence(
        output=str(details.get("output", "the output")),
        profile=str(details.get("profile", "")),
        shape=shape,
        mismatches=_integer(details.get("mismatches")) or 0,
        samples=tuple(_samples(details.get("samples"), len(shape)))[:MAX_SAMPLES],
        nonfinite=_integer(details.get("nonfinite")),
        nan=_integer(details.get("nan")),
        region=_region(details, "", len(shape)),
        nonfinite_region=_region(details, "nonfinite_", len(shape)),
        ratio=_law(details.get("ratio")),
        difference=_law(details.get("difference")),
        small=_small(details.get("small")),
        there=math.inf
        if details.get("exact_there") is True
        else _real(details.get("times_eager_there")),
        evenness=_real(details.get("evenness")),
        diagonal=str(details["diagonal"]) if "diagonal" in details else None,
        origin=details.get("origin"),
        mistake=details.get("mistake"),
        probe=details.get("probe"),
        smaller=_smaller(details.get("smaller")),
        masked_rows=details.get("masked_rows") is True,
    )


def describe(evidence: NumericEvidence, case: CaseResult | None, axis: Axis) -> list[str]:
    """Return sentences on how many elements are wrong, where and by how much.

    `axis` gives the words for a dimension, see `places.axis_names`.
    """
    on = f" on {values_in_words(evidence.profile)}" if evidence.profile else ""
    shape = f" of shape {list(evidence.shape)}" if evidence.shape else ""
    lines = [f"{evidence.output}{shape} is wrong{on}."]
    if evidence.mismatches and evidence.total:
        share = evidence.mismatches / evidence.total
        lines.append(
            f"{evidence.mismatches} of {evidence.total} elements ({_percent(share)}) are far off."
        )
    nonfinite = evidence.nonfinite_region
    if evidence.nonfinite:
        place = places.describe_place(nonfinite.box, nonfinite.patterns, evidence.shape, axis)
        where = f": {place}" if place else ""
        lines.append(f"{evidence.nonfinite} elements are {_what(evidence)}{where}.")
    wrong = evidence.region
    if evidence.mismatches != evidence.nonfinite or wrong.box != nonfinite.box:
        place = places.describe_place(wrong.box, wrong.patterns, evidence.shape, axis)
        lines += [f"They lie at {place}."] if place else []
        lines += [told] if (told := places.describe_diagonal(evidence.diagonal)) else []
    lines += _lost(evidence.small) if evidence.small is not None else _relations(evidence, case)
    return [*lines, evidence.smaller] if evidence.smaller else lines


def sample_table(evidence: NumericEvidence) -> str:
    """Return the samples as text, one a line; empty when there are none."""
    rows = [
        f"{list(s.index)!s:>24}  got {s.got:>14}  expected {s.expected:>14}"
        for s in evidence.samples
    ]
    return "\n".join(rows)


def _what(evidence: NumericEvidence) -> str:
    if evidence.nan is None:
        return "NaN or Inf"
    if evidence.nan == evidence.nonfinite:
        return "NaN"
    return f"NaN or Inf ({evidence.nan} NaN)" if evidence.nan else "Inf"


def _lost(small: Small) -> list[str]:
    return [
        f"They are small ones, {small.size:.2g} times the output's size, and off by "
        f"{small.error:.2g} times their own; eager PyTorch keeps them."
    ]


def _relations(evidence: NumericEvidence, case: CaseResult | None) -> list[str]:
    if evidence.there is not None:
        return [
            f"The stretches of the output that they lie in are {evidence.there:.3g} times as far "
            "off as right implementations are there or on values of that size."
            if math.isfinite(evidence.there)
            else "Right implementations make no error in the stretches that they lie in."
        ]
    if case is None or case.rmse is None:
        return []
    lines = []
    if case.eager_rmse > 0:
        times = case.rmse / case.eager_rmse
        lines.append(f"Its error (root mean square) is {times:.3g} times that of eager PyTorch.")
    if case.golden_rms > 0:
        lines.append(f"That is {case.rmse / case.golden_rms:.2g} of the output's own size.")
    return lines


def _samples(data: object, dims: int) -> list[Sample]:
    found = []
    for item in _list(data):
        if isinstance(item, Mapping):
            index = _integers(item.get("index"))
            if len(index) == dims or not dims:
                got, expected = str(item.get("got", "")), str(item.get("expected", ""))
                found.append(Sample(index, got[:24], expected[:24]))
    return found


def _region(details: Mapping[str, Any], prefix: str, dims: int) -> Region:
    box = tuple(tuple(_integers(pair)) for pair in _list(details.get(f"{prefix}box")))
    patterns = _list(details.get(f"{prefix}patterns"))
    return Region(
        box=tuple((b[0], b[1]) for b in box if len(b) == 2) if len(box) == dims else (),
        patterns=tuple(p for p in patterns if isinstance(p, Mapping)),
    )


def _smaller(data: object) -> str:
    if not isinstance(data, Mapping):
        return ""
    passes, fails = _sizes(data.get("passes")), _sizes(data.get("fails"))
    if passes and fails:
        return (
            f"With {passes} it is right, with {fails} it is wrong already: look at what "
            "changes between the two (a second block, another stage)."
        )
    if passes:
        return f"With {passes} it is right."
    return f"With {fails} it is wrong already." if fails else ""


def _sizes(data: object) -> str:
    if not isinstance(data, Mapping):
        return ""
    return ", ".join(f"{k} = {v}" for k, v in data.items() if isinstance(v, int))


def _law(data: object) -> Law | None:
    if not isinstance(data, Mapping):
        return None
    median, spread = _real(data.get("median")), _real(data.get("spread"))
    if median is None or spread is None:
        return None
    return Law(median, spread, _real(data.get("share")))


def _small(data: object) -> Small | None:
    if not isinstance(data, Mapping):
        return None
    size, error = _real(data.get("size")), _real(data.get("error"))
    return None if size is None or error is None else Small(size, error)


def _list(data: object) -> Sequence[Any]:
    return data if isinstance(data, (list, tuple)) else ()


def _integers(data: object) -> tuple[int, ...]:
    values = tuple(_integer(v) for v in _list(data))
    return tuple(v for v in values if v is not None) if None not in values else ()


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _real(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def number(text: str) -> float | None:
    """Return the number that a sample's text is; None for anything else."""
    try:
        return float(text)
    except ValueError:
        return None


def _percent(share: float) -> str:
    return f"{share:.2%}" if share < 0.1 else f"{share:.0%}"
