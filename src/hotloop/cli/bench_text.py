"""What `bench` says: the opening lines, one row a problem, counts by level, how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotloop.cli import timing_text, wording
from hotloop.cli.summary import BUILTIN_NOTICE, FILES_SHOWN
from hotloop.core.command_line import quoted
from hotloop.core.units import format_ms
from hotloop.suite.folder import RUNS_FOLDER, SUITE_FILE
from hotloop.suite.planning import SuitePlan
from hotloop.suite.runner import SuiteOptions
from hotloop.suite.standing import WAITING, Standing, State

REASON_CHARACTERS = 90
_HEADINGS = ("problem", "state", "best", "time", "speed-up", "calls")


def opening(plan: SuitePlan, chosen: SuiteOptions) -> list[str]:
    """Return the lines that say what is about to happen."""
    search = plan.jobs[0].plan
    lines = [BUILTIN_NOTICE] if search.config.model is None else []
    if search.config.model is not None and search.start_only:
        lines.append(f"generator: {search.config.model} wrote the kernels; nobody is asked now")
    elif search.config.model is not None:
        lines.append(f"generator: {search.config.model} writes {search.config.language}")
    seats, runs = chosen.seats, chosen.runs_per_seat
    where = f"{len(seats)} GPU(s)" if seats[0] is not None else str(search.spec.device)
    if runs > 1:
        where += (
            f", {runs} runs at a time on each" if len(seats) > 1 else f", {runs} runs at a time"
        )
    if not search.judge.is_local:
        where = f"judge {search.judge}"
    earlier = " (going on with it)" if (plan.folder / SUITE_FILE).exists() else ""
    lines.append(f"suite: {len(plan.record.problems)} problem(s), {where}")
    if search.precision is not None:
        lines.append(f"precision: {plan.record.precision}, by --precision")
    lines += _starts(plan)
    share_s = search.spec.budget.wall_s
    if chosen.shared_budget and share_s is not None:
        lines.append(
            f"shared budget: {share_s:g} s a problem first; what is left over goes to those with "
            "the most to gain"
        )
    lines.append(f"suite folder: {plan.folder}{earlier}")
    return lines


def _starts(plan: SuitePlan) -> list[str]:
    """Say what problems begin from; nothing where they do not begin from a suite's kernels."""
    starts, without = plan.starts, plan.without_start
    if starts is None:
        return []
    lines = [f"start: {len(starts.kernels)} verified kernel(s) of {starts.folder}"]
    if without:
        end = "are left out" if plan.jobs[0].plan.start_only else "begin from nothing"
        listed = ", ".join(name.removeprefix(f"{plan.record.suite}/") for name in without)
        lines.append(f"without a kernel there: {len(without)} problem(s) {end}: {listed}")
    return lines


def closing(plan: SuitePlan, rows: Sequence[Standing]) -> str:
    """Return the table, the counts, and what to do next."""
    cells = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(_HEADINGS))]
    lines = [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in cells
    ]
    for level, counts in _levels(rows).items():
        told = ", ".join(f"{n} {name}" for name, n in counts.items() if n and name != "problems")
        lines.append(f"level {level}: {counts['problems']} problem(s): {told}")
    return "\n".join([*lines, *_next(plan, rows)])


def record(plan: SuitePlan, rows: Sequence[Standing]) -> dict[str, Any]:
    """Return the JSON object of `bench --json`."""
    return {
        "folder": str(plan.folder),
        "suite": plan.record.suite,
        "options": plan.record.options,
        "limits": plan.record.limits,
        "levels": {str(level): counts for level, counts in _levels(rows).items()},
        "problems": [_row(plan, row) for row in rows],
    }


def _row(plan: SuitePlan, row: Standing) -> dict[str, Any]:
    found, best = row.result, row.best
    performance = None if best is None else best.performance
    fastest = row.speedup
    return {
        "problem": row.member.name,
        "title": row.member.title,
        "problem_id": row.member.problem_id,
        "folder": str(plan.folder / row.member.folder),
        "state": row.state.value,
        "reason": row.reason,
        "passed": row.passed,
        "status": row.status,
        "tier": None if best is None else best.tier.value,
        "latency_ms": None if performance is None else performance.latency_ms,
        "fastest_baseline": None if fastest is None else fastest[0],
        "speedup": None if fastest is None else fastest[1],
        "calls": 0 if found is None else found.calls,
        "tokens": 0 if found is None else found.tokens,
        "usd": 0 if found is None else found.usd,
        "attempts": 0 if found is None else len(found.attempts),
        "spent_s": 0 if found is None else found.spent_s,
        "setup_s": 0 if found is None else found.setup_s,
        "waiting": [] if found is None or row.state not in WAITING else list(found.waiting),
    }


def _cells(row: Standing) -> tuple[str, ...]:
    state = row.state.value
    if row.state in (State.SKIPPED, State.FAILED) and row.reason:
        state += f": {wording.plain(row.reason, limit=REASON_CHARACTERS)}"
    time, gain = _measured(row)
    calls = 0 if row.result is None else row.result.calls
    return (row.member.name, state, row.status or wording.NOTHING, time, gain, str(calls))


def row_words(row: Standing) -> str:
    """Return where a problem stands and what its best kernel came to, in one line."""
    words = [row.state.value]
    if row.best is not None:
        figures = [cell for cell in _measured(row) if cell != wording.NOTHING]
        words.append(", ".join([f"{row.best.status.value} ({row.best.tier.value} tier)", *figures]))
    elif row.state is State.DONE:
        words.append("no kernel passed")
    return ": ".join(words)


def _measured(row: Standing) -> tuple[str, str]:
    """Return time and speed-up of the best kernel, where they were measured."""
    performance = None if row.best is None else row.best.performance
    if performance is None:
        return wording.NOTHING, wording.NOTHING
    time = format_ms(performance.latency_ms)
    if row.speedup is None:
        return time, wording.NOTHING
    name = row.speedup[0]
    return time, f"{timing_text.ratio(performance, name)} over {name}"


def _levels(rows: Sequence[Standing]) -> dict[int, dict[str, int]]:
    """Count by level: problems, those with a verified kernel, and those in each state."""
    counts: dict[int, dict[str, int]] = {}
    for row in rows:
        level = counts.setdefault(
            row.member.level, {"problems": 0, "passed": 0, **{s.value: 0 for s in State}}
        )
        level["problems"] += 1
        level["passed"] += row.passed
        level[row.state.value] += 1
    return counts


def _to_answer(rows: Sequence[Standing]) -> list[str]:
    """Return the files to be answered, each with its problem, and what to do with them."""
    files = {
        name: row.member.name
        for row in rows
        if row.state in WAITING and row.result
        for name in row.result.waiting
    }
    told = f"{len(files)} file(s) to be answered, X.prompt.md by X.reply.md, then the same command:"
    shown = [f"  {wording.plain(f, limit=300)} ({name})" for f, name in files.items()]
    rest = len(shown) - FILES_SHOWN
    return [told, *shown[:FILES_SHOWN], *([f"  ... and {rest} more"] if rest > 0 else [])]


def _next(plan: SuitePlan, rows: Sequence[Standing]) -> list[str]:
    states = {row.state for row in rows}
    lines = []
    if State.VERDICT in states:
        bundle = ["hotloop", "bundle", str(plan.folder), "--out", "suite.bundle"]
        lines.append(f"what awaits the judge: {quoted(bundle)}")
        lines.append("on the GPU machine: hotloop judge --bundle suite.bundle")
        lines.append("then the same command with --verdicts suite.bundle.verdicts")
    if State.REPLY in states:
        lines += _to_answer(rows)
    if states & {State.FAILED, State.OPEN}:
        lines.append("the same command goes on with what is left")
    show = quoted(["hotloop", "show", plan.folder / RUNS_FOLDER / "LEVEL-ID"])
    return [*lines, f"look closer: {show}"]
