"""What the rows of the pilot amount to. A failure, of whatever kind, counts as a speed-up of 1.0.

1.0 because a user who gets no kernel keeps the code that there was; a kernel that is correct and
slower counts with its own ratio. No row is left out of an average: `rows` says how many there are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.pilot_rows import is_no_try
from benchmarks.pilot_runs import ARMS, MAIN
from benchmarks.results_file import Row
from hotloop.core.statistics import geometric_mean, median
from hotloop.report.metrics import WIN_OVER

FASTEST = "fastest"
"""Over the fastest baseline of each problem, approximations left out."""
APPROXIMATE = frozenset({"flex_approx"})
MOST_COMMON = 5
EXAMPLES = 3


def summarise(rows: Sequence[Row]) -> Row:
    """Return the summary of all rows."""
    main = [row for row in rows if row["arm"] == MAIN]
    triton = [row for row in main if row["language"] == "triton"]
    cuda = [row for row in main if row["language"] == "cuda"]
    return {
        "is_complete": all(row["is_finished"] for row in rows),
        "unfinished": [row["row"] for row in rows if not row["is_finished"]],
        "failures_count_as": 1.0,
        "win_means": f"lower end of the 95 % interval over {WIN_OVER}",
        "triton": group(triton),
        "triton_rankable": group([row for row in triton if row["rankable"]]),
        "cuda": group(cuda),
        "by_level": _by(triton, lambda row: _level(row)),
        "by_class": _by(triton, lambda row: f"{_level(row)}: {row['operator_class']}"),
        "ablation": ablation(rows),
        "failures": failure_classes(rows),
        "tokens": _tokens(rows),
    }


def group(rows: Sequence[Row]) -> Row:
    """Return what one group of rows comes to."""
    correct = [row for row in rows if is_correct(row)]
    rounds = [row["rounds_to_first_correct"] for row in rows]
    known = [n for n in rounds if n is not None]
    return {
        "rows": len(rows),
        "correct": len(correct),
        "correct_percent": round(100 * len(correct) / len(rows), 1) if rows else None,
        "statuses": dict(Counter(row["status"] for row in rows)),
        "library_anchored": sum(bool(row["library_anchor"]) for row in correct),
        "rounds_to_first_correct": {
            "median": median(known) if known else None,
            "distribution": {str(n): known.count(n) for n in sorted(set(known))},
            "never": len(rounds) - len(known),
        },
        "speedup": {name: _over(rows, name) for name in (*_baselines(rows), FASTEST)},
    }


def is_correct(row: Mapping[str, Any]) -> bool:
    """Whether its best kernel passed the final tier."""
    return bool(row["status"] == "PASSED" and row["performance"] is not None)


def speedup(row: Mapping[str, Any], baseline: str) -> float:
    """Return baseline over candidate; 1.0 where there is no verified kernel."""
    found = _measured(row, baseline)
    return 1.0 if found is None else found[0]


def fast_speedup(row: Mapping[str, Any], calls: int) -> float:
    """Return the fastest baseline's time over the best of the first calls, both of the fast tier.

    1.0 where none of them brought a correct kernel, or no baseline was timed.
    """
    times = [ms for ms in row["fast_ms"][:calls] if ms is not None]
    exact = [ms for name, ms in row["setup_baselines_ms"].items() if name not in APPROXIMATE]
    return min(exact) / min(times) if times and exact else 1.0


def ablation(rows: Sequence[Row]) -> Row:
    """Return the arms side by side, over the problems that all of them have a run of."""
    by_arm: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row["language"] == "triton":
            by_arm[row["arm"]][row["problem"]] = row
    names = [arm.name for arm in ARMS if arm.name in by_arm]
    if names in ([], [MAIN]):
        return {"problems": [], "arms": {}}
    shared = set.intersection(*(set(by_arm[name]) for name in names))
    problems = sorted(shared)
    of_main = [by_arm[MAIN][p] for p in problems] if MAIN in by_arm else []
    return {
        "problems": problems,
        "note": "The same problems in each arm; their first drafts share one reply. `main` sees "
        "memory; `sample` has no feedback. `correct_after` and `speedup_after` compare arms at the "
        "same number of calls: correct at the fast tier, and at the final one where it was tried; "
        "fastest baseline over the best time so far, both of the fast tier, geometric mean, 1.0 "
        "without a correct kernel. A run that has had fewer calls counts with what it has. "
        "`speedup` is of the final tier, after all calls of an arm.",
        "arms": {
            name: _arm([by_arm[name][p] for p in problems], of_main) for name in names if problems
        },
    }


def failure_classes(rows: Iterable[Row]) -> Row:
    """Return failures by class, the most common first, with examples by row and attempt."""
    found: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    no_tries = 0
    for row in rows:
        for failure in row["failures"]:
            if is_no_try(failure):
                no_tries += 1
                continue
            key = (failure["status"], failure["kind"], failure["rule"] or "")
            found[key].append(failure | {"row": row["row"]})
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    classes = [
        {"status": status, "kind": kind, "rule": rule or None, "count": len(members)}
        | {"examples": [_example(m) for m in _spread(members)]}
        for (status, kind, rule), members in ordered
    ]
    return {
        "most_common": classes[:MOST_COMMON],
        "others": [{k: v for k, v in c.items() if k != "examples"} for c in classes[MOST_COMMON:]],
        "total": sum(len(members) for members in found.values()),
        "calls_that_failed": no_tries,
    }


def _arm(rows: Sequence[Row], of_main: Sequence[Row]) -> Row:
    calls = max((row["calls"] for row in rows), default=0)
    ratios = [speedup(row, FASTEST) for row in rows]
    pairs = [
        speedup(main, FASTEST) / mine for main, mine in zip(of_main, ratios, strict=bool(of_main))
    ]
    return {
        "correct_after": [sum(_has_correct(row, n) for row in rows) for n in range(1, calls + 1)],
        "calls": [row["calls"] for row in rows],
        "speedup_after": [
            geometric_mean([fast_speedup(row, n) for row in rows]) for n in range(1, calls + 1)
        ],
        "correct": sum(is_correct(row) for row in rows),
        "speedup": _over(rows, FASTEST),
        "speedup_over_eager": _over(rows, "eager"),
        "by_problem": {row["problem"]: round(speedup(row, FASTEST), 4) for row in rows},
        "main_over_this": {
            "geometric_mean": geometric_mean(pairs) if pairs else None,
            "main_better": sum(pair > WIN_OVER for pair in pairs),
            "this_better": sum(pair < 1 / WIN_OVER for pair in pairs),
        },
    }


def _has_correct(row: Row, calls: int) -> bool:
    first = row["rounds_to_first_correct"]
    return first is not None and first <= calls


def _baselines(rows: Iterable[Row]) -> list[str]:
    return sorted({name for row in rows for name in _listed(row)})


def _listed(row: Mapping[str, Any]) -> set[str]:
    """Return the baselines that a problem has, whether or not a kernel was measured beside them."""
    measured = row["performance"]["speedup"] if is_correct(row) else {}
    return {*row["setup_baselines_ms"], *measured}


def _compared(row: Mapping[str, Any]) -> set[str]:
    """Return the baselines that a row counts for: of a verified kernel, those measured with it."""
    return set(row["performance"]["speedup"]) if is_correct(row) else _listed(row)


def _measured(row: Mapping[str, Any], baseline: str) -> tuple[float, float | None] | None:
    """Return the ratio and the lower end of its interval; None when there is no result."""
    if not is_correct(row):
        return None
    performance = row["performance"]
    ratios = performance["speedup"]
    if baseline == FASTEST:
        exact = {name: ratio for name, ratio in ratios.items() if name not in APPROXIMATE}
        if not exact:
            return None
        baseline = min(exact, key=lambda name: (exact[name], name))
    if baseline not in ratios:
        return None
    interval = performance["speedup_ci"].get(baseline)
    return ratios[baseline], interval[0] if interval else None


def _over(rows: Sequence[Row], baseline: str) -> Row:
    """Return the averages over one baseline, of the rows whose problem has it.

    A verified kernel that the final tier did not measure beside it (eager attention takes seconds)
    is left out: nothing is known, which is not 1.0.
    """
    mine = [row for row in rows if baseline == FASTEST or baseline in _compared(row)]
    if not mine:
        return {"rows": 0, "geometric_mean": None, "median": None, "best": None, "wins": 0}
    measured = [_measured(row, baseline) for row in mine]
    ratios = [1.0 if found is None else found[0] for found in measured]
    lows = [found[1] for found in measured if found is not None and found[1] is not None]
    return {
        "rows": len(mine),
        "geometric_mean": geometric_mean(ratios),
        "median": median(ratios),
        "best": max(ratios),
        "wins": sum(low > WIN_OVER for low in lows),
        "without_result": sum(found is None for found in measured),
    }


def _level(row: Row) -> str:
    return f"level {row['level']}" if row["level"] else "attention"


def _by(rows: Sequence[Row], name_of: Callable[[Row], str]) -> Row:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[name_of(row)].append(row)
    return {name: group(groups[name]) for name in sorted(groups)}


def _spread(members: Sequence[Row]) -> list[Row]:
    """Return a few examples, of different runs as far as there are."""
    first: dict[str, Row] = {}
    for member in members:
        first.setdefault(member["row"], member)
    return list(first.values())[:EXAMPLES]


def _example(failure: Row) -> Row:
    return {name: failure[name] for name in ("row", "attempt", "action", "tier", "message")}


def _tokens(rows: Sequence[Row]) -> Row:
    counted = [row["tokens"] for row in rows]
    return {
        "unit": ", ".join(sorted({tokens["unit"] for tokens in counted})),
        "note": "A reply that two arms share is counted in each of them.",
        "answered_calls": sum(tokens["answered_calls"] for tokens in counted),
        "prompt": sum(tokens["prompt"] for tokens in counted),
        "reply": sum(tokens["reply"] for tokens in counted),
        "reasoning": "unknown",
    }
