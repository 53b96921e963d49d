"""The targets of the attention benchmark: which are met, by how much, and why others are not.

A target that rows were not measured for is `not measured`, never met. One is met or missed when its
whole interval is on that side of the limit; where the interval spans the limit it is `within
noise`. Reasons of misses (what limits the kernel by profile evidence, and what was tried) stand in
`attention_reasons.toml`, by the target's name and for one commit.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import attention_ratios as ratios
from benchmarks.attention_cases import FIGURE, MAIN_S, NEEDLES, Case
from benchmarks.results_file import RESULTS, Row

REASONS = RESULTS / "attention_reasons.toml"
LENGTHS = (MAIN_S, 16384)
REASON_KEYS = frozenset({"commit", "limit", "evidence", "tried"})

NOT_MEASURED, MISSED, MUST, STRETCH = "not measured", "missed", "must", "stretch"
WITHIN_NOISE = "within noise"
NO_INTERVAL = "no interval"
"""There is a ratio, and no interval of it is claimed: neither met nor missed."""
STATES = (STRETCH, MUST, WITHIN_NOISE, NO_INTERVAL, MISSED, NOT_MEASURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A ratio that is to be reached."""

    name: str
    must: float
    stretch: float | None
    ratio: float | None
    """None: not all of its rows have one."""
    interval: ratios.Interval | None
    rows: tuple[str, ...]
    how: str = ""
    """What the ratio is over, where that was chosen among several."""

    @property
    def state(self) -> str:
        """One of `STATES`: the highest limit that the whole interval reaches."""
        if self.ratio is None:
            return NOT_MEASURED
        if self.interval is None:
            return NO_INTERVAL
        low, high = self.interval
        if self.stretch is not None and low >= self.stretch:
            return STRETCH
        if low >= self.must:
            return MUST
        return MISSED if high < self.must else WITHIN_NOISE


def targets(rows: Iterable[Row]) -> list[Target]:
    """Return all targets with what the rows of the built-in generator say of them."""
    known = ratios.by_key(rows)
    found: list[Target] = []
    for S in LENGTHS:
        found += _over_flex(known, S)
        found += _over_cudnn(known, S)
        found += _beside_full(known, S)
        six = [Case(variant, 64, S) for variant in FIGURE]
        found.append(_mean(known, f"the six, D 64, S {S}, over flex", six, (1.2, 1.3)))
    for D in (64, 128):
        case = [Case("neighbourhood_2d", D)]
        found.append(_mean(known, f"neighbourhood_2d, D {D}, over flex", case, (2.0, None)))
    return found


def _over_flex(known: Mapping[str, Row], S: int) -> list[Target]:  # noqa: N803
    wanted = {"full": (1.25, 1.38), "causal": (1.33, 1.50), "softcap": (2.1, 2.3)}
    found = [
        _mean(known, f"{variant}, D 128, S {S}, over flex", [Case(variant, 128, S)], limits)
        for variant, limits in wanted.items()
    ]
    documents = ratios.packings(128, S)
    name = f"document, D 128, S {S}, over flex, {len(documents)} packings"
    found.append(_mean(known, name, documents, (1.30, 1.40)))
    approximate = [Case("softcap", 128, S)]
    name = f"softcap, D 128, S {S}, over flex with the approximate tanh"
    found.append(_mean(known, name, approximate, (1.2, None), ratios.FLEX_APPROX))
    return found


def _over_cudnn(known: Mapping[str, Row], S: int) -> list[Target]:  # noqa: N803
    return [
        _mean(known, f"{v}, D 128, S {S}, over cuDNN", [Case(v, 128, S)], (0.97, 1.0), ("cudnn",))
        for v in ("full", "causal")
    ]


def _mean(
    known: Mapping[str, Row],
    name: str,
    cases: Sequence[Case],
    limits: tuple[float, float | None],
    baselines: Sequence[str] = ratios.FLEX,
) -> Target:
    keys = tuple(case.key for case in cases)
    over = [ratios.over_fastest(known[key], baselines) for key in keys if key in known]
    return Target(
        name=name,
        must=limits[0],
        stretch=limits[1],
        ratio=ratios.mean_over(known, cases, baselines),
        interval=ratios.mean_interval(known, cases, baselines),
        rows=keys,
        how=", ".join(sorted({one.baseline for one in over if one is not None})),
    )


def _beside_full(known: Mapping[str, Row], S: int) -> list[Target]:  # noqa: N803
    found = []
    full = Case("full", 128, S)
    for variant in ("relative", "alibi"):
        for profile in (None, NEEDLES):
            case = Case(variant, 128, S, profile=profile)
            both = case.key in known and full.key in known
            beside = ratios.to_own(known[full.key], known[case.key]) if both else None
            values = "needles" if profile else "dense"
            found.append(
                Target(
                    name=f"{variant}, D 128, S {S}, {values}, beside our full",
                    must=0.97,
                    stretch=None,
                    ratio=beside.ratio if beside else None,
                    interval=beside.interval if beside else None,
                    rows=(full.key, case.key),
                    how=beside.how if beside else "",
                )
            )
    return found


def load_reasons(measured_commit: str, path: Path = REASONS) -> dict[str, dict[str, str]]:
    """Return the reasons that were written for the misses of a commit, by target.

    Raises:
        ValueError: a name is no target, or a reason lacks what it must state.
    """
    if not path.exists():
        return {}
    reasons = tomllib.loads(path.read_text(encoding="utf-8"))
    names = {target.name for target in targets([])}
    for name, reason in reasons.items():
        if name not in names:
            raise ValueError(f"{path.name}: no target is called {name!r}; --summarise lists them")
        if not isinstance(reason, dict) or set(reason) != REASON_KEYS:
            wanted = ", ".join(sorted(REASON_KEYS))
            raise ValueError(f"{path.name}: {name!r}: expected {wanted}, got {reason!r}")
    return {n: reason for n, reason in reasons.items() if reason["commit"] == measured_commit}


def describe(found: Sequence[Target], reasons: Mapping[str, Mapping[str, str]]) -> list[Row]:
    """Return the targets as JSON values; a miss has its reason, or None where none is given."""
    described = []
    for target in found:
        row: Row = {
            "name": target.name,
            "must": target.must,
            "stretch": target.stretch,
            "ratio": None if target.ratio is None else round(target.ratio, 4),
            "interval": target.interval and [round(end, 4) for end in target.interval],
            "state": target.state,
            "rows": list(target.rows),
            "how": target.how,
        }
        missed_stretch = target.state == MUST and target.stretch is not None
        if target.state in (MISSED, WITHIN_NOISE) or missed_stretch:
            row["reason"] = dict(reasons[target.name]) if target.name in reasons else None
        described.append(row)
    return described


def counts(described: Sequence[Row]) -> dict[str, int]:
    """Return how many targets are in which state."""
    return {state: sum(row["state"] == state for row in described) for state in STATES}


def ratio_text(row: Row) -> str:
    """Return `1.254 [1.250, 1.260]` of a described target; empty where nothing was measured."""
    if row["ratio"] is None:
        return ""
    ends = row["interval"]
    return f"{row['ratio']:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else "")


def target_lines(described: Sequence[Row]) -> list[str]:
    """Return one line a target."""
    lines = []
    for row in described:
        stretch = "" if row["stretch"] is None else f" / {row['stretch']:g}"
        reason = ""
        if row["state"] == MISSED:
            reason = row["reason"]["limit"] if row["reason"] else "no reason is given"
        limits = f"{row['must']:g}{stretch}"
        line = f"{row['name']:<60} {ratio_text(row):>20} of {limits}: {row['state']} {reason}"
        lines.append(line.rstrip())
    return lines
