"""What the runs of honest kernels come to: counts by family, and a bound on the refusal rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.honest_catalogue import FAMILIES
from benchmarks.results_file import Row

PASSED = "PASSED"
INCONCLUSIVE = "INCONCLUSIVE"
LEVEL = 0.95
SOURCE = (
    "exact one-sided binomial bound: Clopper and Pearson, Biometrika 26 (1934) 404-413; with no "
    "refusal it is 1 - 0.05 ** (1 / n), about 3 / n (Hanley and Lippman-Hand, JAMA 249 (1983) "
    "1743-1745)"
)
STEPS = 60
"""Halvings of [0, 1]: more than a double resolves."""


def upper_bound(refused: int, runs: int, level: float = LEVEL) -> float | None:
    """Return the one-sided Clopper-Pearson bound on a rate, in [0, 1]; None without runs.

    It is the rate at which `refused` or fewer of `runs` have a probability of 1 - level. Runs are
    taken for independent.

    Raises:
        ValueError: there are more refusals than runs, or fewer than none.
    """
    if not 0 <= refused <= runs:
        raise ValueError(f"expected 0 to {runs} refusals, got {refused}")
    if runs == 0:
        return None
    if refused == runs:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        rate = (low + high) / 2
        if _at_most(refused, runs, rate) > 1 - level:
            low = rate
        else:
            high = rate
    return high


def _at_most(k: int, n: int, rate: float) -> float:
    """Return the probability of k or fewer of n, for a rate inside (0, 1)."""
    log_in, log_out = math.log(rate), math.log1p(-rate)
    return math.fsum(
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(i + 1)
            - math.lgamma(n - i + 1)
            + i * log_in
            + (n - i) * log_out
        )
        for i in range(k + 1)
    )


def is_refused(row: Row) -> bool:
    """Whether a finished run of an honest kernel got another status than it has earned."""
    return row["error"] is None and row["status"] not in (PASSED, INCONCLUSIVE)


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the counts of a results file."""
    judged = [row for row in rows if not row["by_design"]]
    done = [row for row in judged if row["error"] is None]
    refused = [row for row in done if is_refused(row)]
    kernels = {row["kernel"] for row in done}
    bad = {row["kernel"] for row in refused}
    return {
        "runs": len(done),
        "kernels": len(kernels),
        "problems": len({row["problem"] for row in done}),
        "families": {name: _family(done, name) for name in FAMILIES},
        "runs_by_tier": {
            tier: sum(row["tier"] == tier for row in done) for tier in ("fast", "final")
        },
        "passed": sum(row["status"] == PASSED for row in done),
        "refused": len(refused),
        "refused_kernels": sorted(bad),
        "inconclusive": sum(row["status"] == INCONCLUSIVE for row in done),
        "errors": len(judged) - len(done),
        "refusal_rate_upper_95": upper_bound(len(refused), len(done)),
        "refused_kernel_share_upper_95": upper_bound(len(bad), len(kernels)),
        "bound": SOURCE,
        "refused_by_the_contract": {
            row["kernel"]: row["message"] for row in rows if row["by_design"] and row["status"]
        },
        "wall_s": math.fsum(row["wall_s"] for row in rows),
        "load_s": math.fsum(row["load_s"] for row in rows),
        "judges_per_gpu": max((row.get("judges_per_gpu", 1) for row in done), default=1),
    }


def _family(done: Sequence[Row], name: str) -> dict[str, int]:
    mine = [row for row in done if name in row["families"]]
    return {
        "kernels": len({row["kernel"] for row in mine}),
        "runs": len(mine),
        "refused": sum(is_refused(row) for row in mine),
    }


def table(rows: Sequence[Row]) -> str:
    """Return a line for each run that did not pass, one for each family, and the counts."""
    lines = [f"{row['key']}: {told(row)}" for row in rows if told(row) != PASSED]
    found = summarise(rows)
    for name, of in found["families"].items():
        lines.append(
            f"{name:16} {of['kernels']:4} kernels {of['runs']:5} runs {of['refused']:3} refused"
        )
    bound = found["refusal_rate_upper_95"]
    lines.append(
        f"{found['runs']} runs of {found['kernels']} kernels on {found['problems']} problems: "
        f"{found['refused']} refused, {found['inconclusive']} inconclusive, {found['errors']} "
        "without a result" + ("" if bound is None else f"; refusal rate below {bound:.2%} (95 %)")
    )
    return "\n".join(lines)


def told(row: Row) -> str:
    """Return a run's outcome in one line; PASSED where all is as it should be."""
    if row["error"] is not None:
        return f"no result: {row['error']}"
    if row["by_design"]:
        return f"{row['status']} by the contract: {row['message']}"
    return PASSED if row["status"] == PASSED else f"{row['status']}: {row['message']}"
