"""What each results file says of the verifier: figures, and targets with whether they are met.

A target is held against every file of its kind; one whose figure is not there is neither met nor
missed (`met` is None). Pure arithmetic on the `summary` of a results file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Summary = Mapping[str, Any]
AT_LEAST, AT_MOST, UNDER = "at least", "at most", "under"
COUNT, SHARE, SECONDS = "count", "share", "s"
MIN_ATTACKS, MIN_RUNS, MIN_KERNELS = 60, 300, 60
MIN_MUTANTS, MIN_MUTATED, MIN_RULES, MIN_FINAL_MUTANTS = 1000, 40, 40, 300
MIN_FAST, MIN_FINAL, MIN_CLASS = 0.95, 0.99, 0.90
FULL_S, SHORT_S, P50_S, P90_S = 60.0, 20.0, 1.5, 6.0


@dataclass(frozen=True, slots=True)
class Target:
    """One figure and what it is held to."""

    name: str
    what: str
    """For people."""
    rule: str
    """`at least`, `at most` or `under`."""
    limit: float
    unit: str
    """`count`, `share` (of 1) or `s` (seconds)."""
    read: Callable[[Summary], float | None]
    """Its value in a summary; None where it was not measured."""

    def met(self, value: float | None) -> bool | None:
        """Whether a value keeps it; None where there is none."""
        if value is None:
            return None
        if self.rule == AT_LEAST:
            return value >= self.limit
        return value <= self.limit if self.rule == AT_MOST else value < self.limit


def _at(*path: str) -> Callable[[Summary], float | None]:
    def read(summary: Summary) -> float | None:
        found: Any = summary
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return None if found is None else float(found)

    return read


def _length(name: str) -> Callable[[Summary], float | None]:
    return lambda summary: len(summary[name])


def not_refused(summary: Summary) -> float:
    """Return the attacks without a right answer: passed, refused for something else, no result."""
    return float(summary["attacks"] - summary["attacks_refused"])


def worst_group(summary: Summary) -> tuple[float, str] | None:
    """Return the lowest score, in [0, 1], of a class of which a mutant counts, and its name."""
    groups = summary["by_group"].items()
    return min(((part["score_frac"], n) for n, part in groups if part["counted"]), default=None)


def worst_class(summary: Summary) -> float | None:
    """Return the score of the worst class alone."""
    worst = worst_group(summary)
    return worst[0] if worst is not None else None


def not_in_time(summary: Summary) -> float:
    """Return the problems of which a final tier failed or took too long."""
    return float(summary["problems"] - summary["within_limits"])


_ATTACKS = (
    Target("attacks", "attacks tried", AT_LEAST, MIN_ATTACKS, COUNT, _at("attacks")),
    Target("attacks_not_refused", "attacks not refused", AT_MOST, 0, COUNT, not_refused),
    Target(
        "look_alikes_refused", "honest kernels that look like cheats, refused", AT_MOST, 0, COUNT,
        _length("honest_refused"),
    ),
)  # fmt: skip
_MUTATION = (
    Target("mutants", "mutants tried", AT_LEAST, MIN_MUTANTS, COUNT, _at("mutants")),
    Target("mutated_kernels", "kernels that were mutated", AT_LEAST, MIN_MUTATED, COUNT,
           _at("kernels")),
    Target("mutation_rules", "rules of mutation", AT_LEAST, MIN_RULES, COUNT, _at("rules")),
    Target(
        "mutation_fast", "mutation score, fast tier", AT_LEAST, MIN_FAST, SHARE,
        _at("total", "score_frac"),
    ),
    Target(
        "mutation_worst_class", "mutation score of the worst class", AT_LEAST, MIN_CLASS, SHARE,
        worst_class,
    ),
)  # fmt: skip
_MUTATION_FINAL = (
    Target("final_mutants", "mutants at the final tier", AT_LEAST, MIN_FINAL_MUTANTS, COUNT,
           _at("final", "total", "counted")),
    Target(
        "mutation_final", "mutation score, final tier", AT_LEAST, MIN_FINAL, SHARE,
        _at("final", "total", "score_frac"),
    ),
)  # fmt: skip
TARGETS: Mapping[str, tuple[Target, ...]] = {
    "attacks_cpu": _ATTACKS,
    "attacks_gpu": _ATTACKS,
    "honest": (
        Target("honest_runs", "runs of honest kernels", AT_LEAST, MIN_RUNS, COUNT, _at("runs")),
        Target("honest_kernels", "honest kernels", AT_LEAST, MIN_KERNELS, COUNT, _at("kernels")),
        Target(
            "honest_rejected", "runs of honest kernels rejected", AT_MOST, 0, COUNT, _at("refused")
        ),
    ),
    "mutation_cpu": _MUTATION,
    "mutation_gpu": (*_MUTATION, *_MUTATION_FINAL),
    "audit": (),
    "timing": (),
    "final_cost": (
        Target(
            "final_full_s", "full final tier, longest", UNDER, FULL_S, SECONDS,
            _at("full", "longest_s"),
        ),
        Target(
            "final_short_s", "short final tier, longest", UNDER, SHORT_S, SECONDS,
            _at("short", "longest_s"),
        ),
        Target(
            "final_not_in_time", "problems with a final tier that failed or took longer", AT_MOST,
            0, COUNT, not_in_time,
        ),
    ),
    "throughput": (
        Target("fast_p50_s", "fast tier on the GPU, median", AT_MOST, P50_S, SECONDS,
               _at("gpu_s", "p50")),
        Target("fast_p90_s", "fast tier on the GPU, 90 % under", AT_MOST, P90_S, SECONDS,
               _at("gpu_s", "p90")),
    ),
    "cage": (),
}  # fmt: skip
"""By kind of results file."""

KEPT: Mapping[str, tuple[str, ...]] = {
    "attacks_cpu": (
        "attacks", "attacks_refused", "attacks_passed", "attacks_refused_with_another_status",
        "refused_at_the_final_tier_only", "by_corpus", "attacks_by_stage", "attacks_by_status",
        "honest", "honest_passed", "honest_refused", "settled", "without_a_result", "needs_a_gpu",
    ),
    "honest": (
        "runs", "kernels", "problems", "passed", "refused", "refused_kernels", "inconclusive",
        "errors", "refusal_rate_upper_95", "bound",
    ),
    "mutation_cpu": (
        "device", "mutants", "rules", "kernels", "total", "by_group", "final",
        "survivors", "survivors_by_witness", "killed_by_status", "notes", "commits",
    ),
    "audit": (
        "problems", "ranked", "not_ranked", "refused", "errors",
        "with_a_fake_that_passes_nominal_values", "fakes_passed_nominal_by_kind",
    ),
    "timing": (
        "kernels", "empty_ms", "understated", "control_outside", "control_worst", "copy_gbps",
    ),
    "final_cost": (
        "problems", "suite", "within_limits", "full", "short", "tools_ran", "tools_skipped",
    ),
    "throughput": (
        "problems", "new_passed", "gpu_s", "wall_s", "early_failure_s", "unexpected_verdicts",
    ),
    "cage": ("attacks", "open"),
}  # fmt: skip
"""Names of a summary that the merged file keeps, by kind."""


def kept(kind: str, summary: Summary) -> dict[str, Any]:
    """Return the figures of a summary that the merged file keeps."""
    names = KEPT.get(kind) or KEPT[kind.replace("gpu", "cpu")]
    return {name: summary[name] for name in names if name in summary}
