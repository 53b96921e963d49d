"""The figures of a suite, from the journals of its runs alone.

Columns (generator, precision policy, device) are never mixed, summed or maxed. In each of them the
populations stand side by side: `all` problems; `rankable` ones, by the judge's own word; and
`decidable` ones, which leave out those alone that something was found against, so a problem that
was never loaded stays in it. Targets are over `decidable`. Everything is of the final tier unless
its name says `fast_tier`; on `cpu`, where there is no final tier, there is no speed and no
`correct` either.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hotloop.core.attempt import Attempt
from hotloop.core.statistics import median
from hotloop.report.metrics import WIN_OVER
from hotloop.suite.curves import curves
from hotloop.suite.figures_classes import failure_classes, start_failure_classes
from hotloop.suite.figures_correct import first_confirmed, first_fast_tier
from hotloop.suite.figures_costs import Paid, to_reach
from hotloop.suite.figures_rows import FAST_TIER_PASSED, RunRow, SuiteRun, read_rows
from hotloop.suite.figures_speed import BASELINES, EAGER_TF32, State, compare, is_own, over

Rows = Sequence[RunRow]


def suite_figures(runs: Iterable[SuiteRun]) -> dict[str, Any]:
    """Return all figures of a suite as JSON values.

    Args:
        runs: one for each problem of the suite (and of each column), also where nothing was run.

    Raises:
        ValueError: two runs of one column are of the same problem.
    """
    return figures_of(read_rows(runs))


def figures_of(rows: Rows) -> dict[str, Any]:
    """Return all figures of rows that were read before."""
    columns: dict[str, list[RunRow]] = defaultdict(list)
    for row in rows:
        columns[row.column.name].append(row)
    return {
        "definitions": {
            "failures_count_as": 1.0,
            "win": f"lower end of the 95 % interval over {WIN_OVER}",
            "fast_p": "share with a correct kernel faster than p times the baseline, strictly",
            "better_of_both": "the faster of eager and torch.compile, problem by problem",
            "first_correct": "the first kernel that passed the final tier, which only the best few "
            "of a run are put to; fast_tier_first_correct: the first that passed the fast tier "
            "and failed no final one",
            "time_s": "the budget's clock: it stands while only answers from outside are awaited; "
            "unknown where the judge was elsewhere and its verdicts came in files",
            "failures": "failed verdicts of what the generator was asked for",
            "start_failures": "failed verdicts of the kernels that runs began from",
            "decidable": "all but those that the audit found something against; classes of "
            "operators and curves are of these",
        },
        "columns": {name: _column(mine) for name, mine in columns.items()},
        "precision": _precision(rows),
    }


def _column(rows: Rows) -> dict[str, Any]:
    levels: dict[str, list[RunRow]] = defaultdict(list)
    for row in rows:
        levels[str(row.run.level)].append(row)
    return {
        "levels": {level: _populations(mine) for level, mine in levels.items()},
        "together": _populations(rows),
        "by_class": _by(
            _decidable(rows), lambda row: f"level {row.run.level}: {row.operator_class}"
        ),
        "failures": failure_classes(rows),
        "start_failures": start_failure_classes(rows),
        "curves": {level: curves(_decidable(mine)) for level, mine in levels.items()}
        | {"together": curves(_decidable(rows))},
        "not_solved": [_named(row) for row in rows if not _is_good(row)],
        "undecidable": [
            {"problem": row.name, "status": row.status, "reason": row.undecidable}
            for row in rows
            if row.undecidable is not None
        ],
        "short_final": [r.name for r in rows if r.is_solved and r.final and r.final.short],
    }


def _populations(rows: Rows) -> dict[str, Any]:
    return {
        "all": group(rows),
        "rankable": group([row for row in rows if row.rankable]),
        "decidable": group(_decidable(rows)),
    }


def _decidable(rows: Rows) -> Rows:
    return [row for row in rows if row.undecidable is None]


def group(rows: Rows) -> dict[str, Any]:
    """Return the figures of one group of problems of one column."""
    found: dict[str, Any] = {
        "problems": len(rows),
        "statuses": dict(sorted(Counter(row.status for row in rows).items())),
        "waiting": sum(row.is_waiting for row in rows),
        "to_fast_tier_first_correct": to_reach([_paid(r, first_fast_tier(r)) for r in rows]),
        "fast_tier_correct": sum(first_fast_tier(row) is not None for row in rows),
    }
    if any(row.column.device == "cpu" for row in rows):
        return found | {"correct": None, "correct_percent": None, "speedup": None}
    solved = [row for row in rows if row.is_solved]
    anchors = [row.anchor for row in solved if row.anchor is not None]
    return found | {
        "correct": len(solved),
        "correct_percent": 100 * len(solved) / len(rows) if rows else None,
        "speedup": {name: over(rows, name) for name in _baselines(rows)},
        "library_anchors": {
            "yes": sum(a.found for a in anchors),
            "by_source_alone": sum(a.by_source_alone for a in anchors),
        },
        "without_library_anchors": _own(rows),
        "to_first_correct": to_reach([_paid(row, first_confirmed(row)) for row in rows]),
        "to_best": to_reach([_paid(row, row.best if row.is_solved else None) for row in rows]),
        "peak_memory_bytes": _memory(solved),
    }


def _own(rows: Rows) -> dict[str, Any]:
    """Return the figures in which a kernel that leans on a library counts as a failure."""
    own = sum(is_own(row) for row in rows)
    return {
        "correct": own,
        "correct_percent": 100 * own / len(rows) if rows else None,
        "speedup": {name: over(rows, name, own_only=True) for name in _baselines(rows)},
    }


def _baselines(rows: Rows) -> tuple[str, ...]:
    """Return what is compared with; eager with TF32 only where it was measured."""
    has = any(compare(row, EAGER_TF32).state is not State.WITHOUT for row in rows)
    return (*BASELINES, EAGER_TF32) if has else BASELINES


def _paid(row: RunRow, attempt: Attempt | None) -> Paid | None:
    if attempt is None:
        return None
    return row.paid.get(attempt.id, Paid(time_s=None, tokens=None, usd=None))


def _memory(solved: Rows) -> dict[str, Any]:
    """Return the kernels' peak; nothing says what eager took, so there is no ratio."""
    peaks = [row.performance.peak_memory_bytes for row in solved if row.performance is not None]
    known = [peak for peak in peaks if peak is not None]
    return {
        "median": median(known) if known else None,
        "most": max(known, default=None),
        "known": len(known),
        "unknown": len(solved) - len(known),
    }


def _precision(rows: Rows) -> list[dict[str, Any]]:
    """Return the precision policies side by side, over the problems that were run under several.

    For each generator, device and level; empty where only one policy was run.
    """
    groups: dict[tuple[str, str, int], dict[str, dict[str, RunRow]]] = defaultdict(dict)
    for row in rows:
        key = (row.column.generator, row.column.device, row.run.level)
        groups[key].setdefault(row.column.precision, {})[row.name] = row
    found = []
    for (generator, device, level), policies in groups.items():
        shared = set.intersection(*(set(mine) for mine in policies.values()))
        if len(policies) < 2 or not shared:
            continue
        of = {name: [r for n, r in mine.items() if n in shared] for name, mine in policies.items()}
        tf32 = Counter(r.info.eager_tf32 for r in of.get("as_shipped", []) if r.info is not None)
        found.append({
            "generator": generator,
            "device": device,
            "level": level,
            "problems": len(shared),
            "policies": {name: group(mine) for name, mine in of.items()},
            "eager_rounds_convolutions_to_tf32": {
                "yes": tf32[True], "no": tf32[False], "unknown_or_none": tf32[None]
            },
        })  # fmt: skip
    return found


def _by(rows: Rows, name_of: Callable[[RunRow], str]) -> Mapping[str, Any]:
    groups: dict[str, list[RunRow]] = defaultdict(list)
    for row in rows:
        groups[name_of(row)].append(row)
    return {name: group(groups[name]) for name in sorted(groups)}


def _is_good(row: RunRow) -> bool:
    return row.is_solved or row.status == FAST_TIER_PASSED


def _named(row: RunRow) -> dict[str, Any]:
    return {
        "problem": row.name,
        "status": row.status,
        "why": row.why,
        "undecidable": row.undecidable is not None,
    }
