"""One problem's section: badges, facts, timing, checks, sources and lineage, ready to be rendered.

Takes what a verdict holds and says it in words; decides nothing anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hotloop.core.problem import TensorSpec
from hotloop.core.units import format_ms
from hotloop.report import display
from hotloop.report.highlight import highlight_within
from hotloop.report.lineage import Lineage, lineage
from hotloop.report.page import CPU, Fact, ProblemPage, Spending
from hotloop.report.tables import Table
from hotloop.report.verdict_facts import check_facts, timing_table, verdict_facts

LISTED = 8
"""Findings, notes and inputs that are shown of each kind."""
LINE_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Badge:
    """A short word on a problem."""

    text: str
    css: str
    """`good`, `bad`, `warn` or `plain`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """One file of the best kernel."""

    path: str
    html: Markup
    cut: int
    """Characters that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of one problem fits the page."""

    source_bytes: int
    """HTML of all files of its best kernel."""
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Everything that the page shows of one problem."""

    problem: ProblemPage
    badges: Sequence[Badge]
    result: str
    """Time and speed-up of the best kernel; empty where there is none to report."""
    problem_facts: Sequence[Fact]
    audit: Sequence[Fact]
    verdict_facts: Sequence[Fact]
    checks: Sequence[Fact]
    timing: Table | None
    sources: Sequence[SourceText]
    lineage: Lineage
    search_text: str
    """What the text filter looks into, in lower case."""
    is_timed: bool


def section(problem: ProblemPage, limits: Limits) -> Section:
    """Return the section of a problem."""
    verdict = problem.verdict
    badges = list(_badges(problem))
    words = (problem.name, problem.title, problem.status, problem.state, problem.operator_class)
    return Section(
        problem=problem,
        badges=badges,
        result=_result(problem),
        problem_facts=list(_problem_facts(problem)),
        audit=list(_audit(problem)),
        verdict_facts=[] if verdict is None else list(verdict_facts(problem, verdict)),
        checks=[] if verdict is None else list(check_facts(verdict)),
        timing=None if verdict is None else timing_table(verdict),
        sources=_sources(problem, limits.source_bytes),
        lineage=lineage(problem, limits.attempts),
        search_text=display.one_line(" ".join((*words, *(b.text for b in badges))).lower()),
        is_timed=problem.device != CPU,
    )


def _result(problem: ProblemPage) -> str:
    """Return the final tier's numbers: only these are reported as results."""
    final = problem.final
    if final is None or final.performance is None:
        return ""
    time = display.ms(final.performance.latency_ms)
    if not final.performance.speedup_ci:
        return f"{time}, ratio not claimed"
    return f"{time}, {display.least_speedup(final.performance)}"


def _badges(problem: ProblemPage) -> Iterable[Badge]:
    if problem.status in ("PASSED", "FAST_TIER_PASSED"):
        yield Badge("verified" if problem.status == "PASSED" else "correct, not timed", "good")
    elif problem.status.startswith("FINAL_"):
        yield Badge(f"final tier: {problem.status.removeprefix('FINAL_')}", "bad")
    elif problem.status == "NO_FINAL":
        yield Badge("fast tier only", "warn")
    else:
        words = problem.status.replace("_", " ").lower()
        yield Badge(words, "bad" if problem.is_over else "plain")
    if not problem.is_over:
        yield Badge(problem.state, "warn")
    if problem.info is not None and not problem.info.rankable:
        yield Badge("not ranked", "warn")
    better = problem.beside.get("better_of_both")
    if better is not None and better.state == "measured" and better.speedup is not None:
        if better.speedup.is_win:
            yield Badge("win", "good")
        elif better.speedup.high < 1:
            yield Badge("slower", "warn")
    if better is not None and better.state == "unclaimed":
        yield Badge("ratio not claimed", "warn")
    if problem.library_anchor:
        yield Badge("library anchor", "plain")
    verdict = problem.verdict
    if verdict is None:
        return
    if verdict.mode is not None:
        yield Badge(verdict.mode.replace("_", " "), "plain")
    if verdict.short:
        yield Badge("short final tier", "plain")
    if verdict.deterministic is False:
        yield Badge("differs in last bits", "plain")
    if verdict.performance is not None and verdict.performance.timing_checks.get("launch_bound"):
        yield Badge("launch-bound", "plain")


def _problem_facts(problem: ProblemPage) -> Iterable[Fact]:
    yield Fact("Class", problem.operator_class)
    if problem.why:
        yield Fact("Why", display.one_line(problem.why, limit=LINE_CHARACTERS))
    if problem.spent is not None:
        yield Fact("Spent", _spent(problem.spent))
    info = problem.info
    if info is None:
        yield Fact("Problem", "not loaded yet: nothing is known of its reference")
        return
    yield Fact("Rankable", "yes" if info.rankable else "no: a speed-up here says little")
    yield Fact("Inputs", _tensors(info.inputs))
    yield Fact("Outputs", _tensors(info.outputs))
    if problem.device != CPU:
        at_setup = [f"{name} {format_ms(t)}" for name, t in sorted(info.baselines_ms.items())]
        yield Fact("Baselines at set-up", ", ".join(at_setup) or display.NOT_MEASURED)
    for name, why in info.missing_baselines.items():
        yield Fact(f"No {display.one_line(name, limit=40)}", display.one_line(why))
    if info.eager_tf32 is not None:
        yield Fact("Eager's convolutions", "TF32" if info.eager_tf32 else "full float32")


def _spent(spent: Spending) -> str:
    times = (
        f"{display.seconds(spent.time_s)} of the budget, set-up {display.seconds(spent.setup_s)}"
    )
    costs = f"calls {display.count(spent.calls)}, tokens {display.count(spent.tokens)}"
    return f"{times}; {costs}, dollars {display.dollars(spent.usd)}"


def _tensors(specs: Sequence[TensorSpec]) -> str:
    shown = [f"{s.name} {tuple(s.shape)} {s.dtype}" for s in specs[:LISTED]]
    more = [f"and {len(specs) - LISTED} more"] if len(specs) > LISTED else []
    return display.one_line(", ".join([*shown, *more]) or "none", limit=LINE_CHARACTERS)


def _audit(problem: ProblemPage) -> Iterable[Fact]:
    info = problem.info
    if info is None:
        return
    if info.audit is None:
        yield Fact("Audit", "none was made")
    else:
        yield from _listed("Not ranked because", info.audit.reasons)
        yield from _listed("Finding", info.audit.findings)
        if not (info.audit.reasons or info.audit.findings):
            yield Fact("Audit", f"{len(info.audit.trials)} fakes tried, nothing found")
    said = (*info.audit.reasons, *info.audit.findings) if info.audit is not None else ()
    yield from _listed("Note", [note for note in info.notes if note not in said])
    if problem.undecidable is not None and problem.undecidable not in said:
        yield Fact("Undecidable", display.one_line(problem.undecidable, limit=LINE_CHARACTERS))


def _listed(label: str, lines: Sequence[str]) -> Iterable[Fact]:
    for line in lines[:LISTED]:
        yield Fact(label, display.one_line(line, limit=LINE_CHARACTERS))
    if len(lines) > LISTED:
        yield Fact(label, f"and {len(lines) - LISTED} more: hotloop audit shows all")


def _sources(problem: ProblemPage, limit_bytes: int) -> list[SourceText]:
    kernel = problem.kernel
    if kernel is None:
        return []
    files = {source.path: source.text for source in kernel.sources}
    if kernel.pins:
        pinned = "".join(f"{name} = {value!r}\n" for name, value in kernel.pins.items())
        files["pinned values"] = pinned
    made = []
    for path, text in files.items():
        html, cut = highlight_within(display.visible(text), path, limit_bytes // len(files))
        made.append(SourceText(path=display.one_line(path, limit=80), html=html, cut=cut))
    return made
