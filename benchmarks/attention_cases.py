"""The rows of the attention benchmark: which variants, at which sizes, on which packings.

Twelve variants at S 4096; the six of the published figure also at S 1024 and 16384. What a
document mask leaves depends on how documents are packed, so its rows at D 128 that targets are
about are measured on five random packings, and their geometric mean counts. Relative positions and
ALiBi make far keys vanish; at D 128 they are also timed on inputs in which far keys matter
(`needles`). Such rows are about other values, not about another kernel: they verify and time the
one that was found on the file's own, and search none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results_file import ROOT

EXAMPLES = ROOT / "examples" / "attention"
FIGURE = ("full", "causal", "relative", "alibi", "document", "softcap")
"""The variants of the published figure."""
VARIANTS = (
    *FIGURE,
    "sliding_window",
    "document_causal",
    "prefix_lm",
    "sigmoid",
    "head_bias",
    "neighbourhood_2d",
)
HEAD_SIZES = (64, 128)
LENGTHS = (1024, 4096, 16384)
MAIN_S = 4096
H = 16
BATCHES = {1024: 4, 4096: 4, 16384: 2}
"""B at each length."""
PACKINGS = (3, 11, 17, 23, 31)
"""`buffer_seed` of each packing; the first is the example file's own."""
NEEDLES = "needles"


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """One problem at one set of sizes, as one row."""

    variant: str
    """Stem of the file in `examples/attention`."""
    D: int
    S: int = MAIN_S
    packing: int | None = None
    """Seed of the captured tensors in timed calls; None: the file's own."""
    profile: str | None = None
    """Value profile of timed calls; None: the first, plain random values."""

    @property
    def B(self) -> int:  # noqa: N802  the alphabet of shapes
        """Batch."""
        return BATCHES.get(self.S, 4)

    @property
    def key(self) -> str:
        """`causal-64`, `causal-64-s16384`, `document-128-p11`, `alibi-128-needles`."""
        parts = [self.variant, str(self.D)]
        parts += [f"s{self.S}"] if self.S != MAIN_S else []
        parts += [f"p{self.packing}"] if self.packing is not None else []
        parts += [self.profile] if self.profile is not None else []
        return "-".join(parts)

    @property
    def base(self) -> Case | None:
        """The row whose kernel this one times; None: it searches its own."""
        if self.packing is None and self.profile is None:
            return None
        return Case(self.variant, self.D, self.S)

    @property
    def settings(self) -> str:
        """What `--set` gets."""
        found: dict[str, object] = {"D": self.D}
        if self.S != MAIN_S:
            found |= {"S": self.S}
            found |= {"B": self.B} if BATCHES[MAIN_S] != self.B else {}
        if self.packing is not None:
            found["buffer_seed"] = self.packing
        if self.profile is not None:
            found["timed_profile"] = self.profile
        return ",".join(f"{name}={value}" for name, value in found.items())

    @property
    def path(self) -> Path:
        """The problem file."""
        return EXAMPLES / f"{self.variant}.py"


def all_cases() -> tuple[Case, ...]:
    """Return every row of the benchmark, in the order of the tables."""
    cases = [Case(variant, D) for D in HEAD_SIZES for variant in VARIANTS]
    cases += [
        Case(variant, D, S)
        for S in LENGTHS if S != MAIN_S
        for D in HEAD_SIZES
        for variant in FIGURE
    ]  # fmt: skip
    targeted = [S for S in LENGTHS if S >= MAIN_S]
    cases += [Case("document", 128, S, packing=seed) for S in targeted for seed in PACKINGS[1:]]
    vanishing = ("relative", "alibi")
    cases += [Case(variant, 128, S, profile=NEEDLES) for S in targeted for variant in vanishing]
    return tuple(cases)


CASES = all_cases()
BASES = frozenset(case.base for case in CASES if case.base is not None)
"""Rows whose kernels other rows time."""


def select(rows: str, cases: Sequence[Case] = CASES) -> list[Case]:
    """Return the cases of `full,causal-64,s16384`: variants, rows, lengths; all for empty text.

    Raises:
        ValueError: a name is none of those.
    """
    names = [name.strip() for name in rows.split(",") if name.strip()]
    known = {name for case in cases for name in (case.variant, case.key, f"s{case.S}")}
    for name in names:
        if name not in known:
            raise ValueError(
                f"--rows: expected names of {', '.join(sorted(VARIANTS))}, rows such as "
                f"{cases[0].key}, or lengths such as s{MAIN_S}; got {name!r}"
            )
    return [c for c in cases if not names or {c.variant, c.key, f"s{c.S}"} & set(names)]


def without_files(cases: Iterable[Case]) -> list[Case]:
    """Return the cases whose problem file is not there."""
    return [case for case in cases if not case.path.is_file()]
