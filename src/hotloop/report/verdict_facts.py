"""What a page says of a verdict: facts, checks, and the table of baselines."""

from __future__ import annotations

from collections.abc import Iterable

from hotloop.core.units import format_ms
from hotloop.core.verdict import KernelResources, Performance, Status, Tier, Verdict
from hotloop.report import display
from hotloop.report.page import CPU, Fact, ProblemPage
from hotloop.report.tables import Table
from hotloop.report.verdict_words import (
    exactness,
    looser_words,
    resource_words,
    skipped_by_reason,
)

LISTED = 8
"""Kernels that are named."""
LINE_CHARACTERS = 300


def verdict_facts(problem: ProblemPage, verdict: Verdict) -> Iterable[Fact]:
    """Yield what a page says of the best attempt's verdict.

    Args:
        problem: the verdict's, with a best attempt.
        verdict: the highest one of that attempt.
    """
    assert problem.best is not None, "a verdict is that of the best attempt"
    tier = f"{verdict.tier.value}{', short form' if verdict.short else ''}"
    if verdict.tier is Tier.FAST and problem.device != CPU:
        tier += ": no result, the final tier has not judged it"
    yield Fact("Attempt", str(problem.best.id))
    yield Fact("Status", f"{verdict.status.value} at stage {verdict.stage.value}")
    yield Fact("Tier", tier)
    yield Fact("Mode", verdict.mode or "none: not a final verdict")
    yield Fact("Isolation", verdict.isolation)
    yield Fact("Precision policy", verdict.precision_policy)
    yield Fact("Shapes", verdict.shape_scope)
    if verdict.deterministic is not None:
        told = "agree bit for bit" if verdict.deterministic else "differ in the last bits"
        yield Fact("Repeated calls", told)
    if problem.library_anchor is not None:
        told = "yes: a vendor call does part of the work" if problem.library_anchor else "no"
        yield Fact("Library anchor", told)
    if verdict.evidence is not None:
        told = f"{verdict.evidence.kind}: {verdict.evidence.message}"
        yield Fact("Evidence", display.one_line(told, limit=LINE_CHARACTERS))
    if verdict.correctness is not None:
        yield Fact("Correctness", exactness(verdict.correctness))
        for words in looser_words(verdict.correctness):
            yield Fact("Fewer rules", display.one_line(words, limit=LINE_CHARACTERS))
        others = verdict.correctness.other_shapes
        if others:
            right = sum(shape.status is Status.PASSED for shape in others)
            yield Fact("Other shapes", f"right on {right} of {len(others)}, not asked for")
    for kernel in verdict.resources[:LISTED]:
        yield Fact("Compiled", _resources(kernel))
    if verdict.performance is not None:
        yield from _performance(verdict.performance)


def _performance(performance: Performance) -> Iterable[Fact]:
    yield Fact("Time", (
        f"{format_ms(performance.latency_ms)}, spread {format_ms(performance.spread_ms)}, "
        f"{performance.samples} samples"
    ))  # fmt: skip
    yield Fact("Timer", f"{performance.timer}, L2 {performance.l2}")
    yield Fact("Peak memory", display.memory(performance.peak_memory_bytes))
    if performance.prepare_ms is not None:
        yield Fact("Prepared ahead", f"{format_ms(performance.prepare_ms)}, not in the time")
    if performance.host_path_reason is not None:
        yield Fact("Not replayed", display.one_line(performance.host_path_reason))
    for doubt in performance.timing_checks.get("doubts", ()):
        yield Fact("Not sure", display.one_line(doubt, limit=LINE_CHARACTERS))


def _resources(kernel: KernelResources) -> str:
    return f"{display.one_line(kernel.name, limit=120)}: {resource_words(kernel)}"


def check_facts(verdict: Verdict) -> Iterable[Fact]:
    """Yield the checks that ran, and those that did not by reason."""
    names = ", ".join(verdict.checks)
    yield Fact("Checks that ran", display.one_line(names or "none named", limit=1000))
    for why, skipped in skipped_by_reason(verdict).items():
        told = f"{', '.join(skipped)} ({display.one_line(why)})"
        yield Fact("Skipped", display.one_line(told, limit=LINE_CHARACTERS))


def timing_table(verdict: Verdict) -> Table | None:
    """Return the verdict's baselines with ratios and intervals; None where nothing was timed."""
    performance = verdict.performance
    if performance is None or not performance.baselines:
        return None
    is_final = verdict.tier is Tier.FINAL
    rows = []
    for name, ms in sorted(performance.baselines.items()):
        speedup = display.speedup(performance, name)
        ends, claim = display.speedup_interval(performance, name)
        claim = claim if is_final else "fast tier: no result"
        rows.append((display.one_line(name, limit=40), format_ms(ms), speedup, ends, claim))
    head = ("baseline", "its time", "speed-up", "95 % interval", "claim")
    return Table(title="Timing", head=head, rows=rows)
