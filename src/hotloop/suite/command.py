"""The command line of a suite: what was asked for, from its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from hotloop.core.attempt import Budget
from hotloop.core.command_line import number, option_words, quoted
from hotloop.core.record import from_json
from hotloop.plan import BUILTIN
from hotloop.search_options import SearchOptions
from hotloop.suite.folder import Member, SuiteRecord


def given_of(options: SearchOptions, *, full_final: bool, shared: bool) -> dict[str, Any]:
    """Return what a suite's command line has besides what else its record holds.

    Args:
        options: as they were given.
        full_final: whether the final tier is the full one.
        shared: whether time that problems leave over goes to others.
    """
    start, data = options.get("start"), options.get("data")
    return {
        "language": options.get("language"),
        "start": str(start) if isinstance(start, str | Path) else None,
        "full_final": full_final,
        "shared_budget": shared,
        "min_isolation": options.get("min_isolation"),
        "judge": options.get("judge"),
        "data": None if data is None else str(data),
    }


def bench_command(record: SuiteRecord, folder: Path) -> str:
    """Return the command line that runs, or goes on with, the suite."""
    given = record.given
    options = dict(record.options)
    if record.options.get("start"):
        # Its record names all languages of the kernels; each problem has that of its own.
        options["language"] = given.get("language")
    words = ["hotloop", "bench", record.suite, "--problems", _chosen(record.problems)]
    words += command_options(options, record.limits)
    words += option_words({
        "--held-out": short_names(options.get("held_out") or ()),
        "--precision": options.get("precision"),
        "--start": given.get("start"),
        "--start-only": record.start_only,
        "--full-final": given.get("full_final"),
        "--shared-budget": given.get("shared_budget"),
        "--min-isolation": given.get("min_isolation"),
        "--judge": given.get("judge"),
        "--data": given.get("data"),
    })  # fmt: skip
    return quoted([*words, "--out", folder])


def not_recorded(record: SuiteRecord) -> str:
    """Return what the line of `bench_command` lacks, in words; empty where it lacks nothing."""
    is_begun = bool(record.options.get("start"))
    if not record.given:
        start = " and --start, the kernel that it began from," if is_begun else ""
        return f"with --data and --judge{start} as they were: this suite did not record them"
    if is_begun and record.given.get("start") is None:
        return "with --start, the kernel that it began from, which had no file"
    return ""


def command_options(options: Mapping[str, Any], limits: Mapping[str, Any]) -> list[str]:
    """Return the words of a search's options that `optimize` and `bench` both have.

    Args:
        options: as a suite's record, or a run's, holds them.
        limits: likewise.
    """
    budget = from_json(Budget, {k: v for k, v in limits.items() if k != "parallel"})
    is_model = options.get("generator") != BUILTIN
    settings = options.get("settings") or {}
    words = option_words({
        "--model": options.get("model") if is_model else None,
        "--language": options.get("language") if is_model else None,
        "--sees": options.get("sees"),
        "--strategy": options.get("strategy"),
        "--device": options.get("device"),
        "--seed": options.get("seed"),
        "--set": ",".join(f"{k}={v}" for k, v in settings.items()) or None,
        "--budget": None if budget.wall_s is None else f"{number(budget.wall_s)}s",
        "--max-candidates": budget.max_candidates,
        "--max-calls": budget.max_calls,
        "--max-tokens": budget.max_tokens,
        "--max-usd": budget.max_usd,
        "--parallel": limits.get("parallel"),
    })  # fmt: skip
    for folder in options.get("examples") or ():
        words += ["--examples", str(folder)]
    return words


def short_names(problems: Sequence[str]) -> str | None:
    """Return problems' names as `--held-out` takes them: `1/2,2/40`; None where there are none."""
    return ",".join("/".join(name.split("/")[-2:]) for name in problems) or None


def _chosen(problems: Sequence[Member]) -> str:
    """Return the problems as `--problems` takes them: `1/1-20,1/33,2/7`."""
    chosen = sorted((m.level, m.number) for m in problems)
    parts = []
    # Numbers that follow each other have one distance to their place in the list.
    for (level, _), run in groupby(enumerate(chosen), lambda e: (e[1][0], e[1][1] - e[0])):
        numbers = [number for _, (_, number) in run]
        last = f"-{numbers[-1]}" if len(numbers) > 1 else ""
        parts.append(f"{level}/{numbers[0]}{last}")
    return ",".join(parts)
