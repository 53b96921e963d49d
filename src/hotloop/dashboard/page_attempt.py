"""The page of one attempt: verdict, where it is wrong, how fast it is, what changed, who said what.

Everything on it is foreign text or was measured: nothing is executed or judged again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from hotloop.core.attempt import Attempt
from hotloop.core.model import Finish, Reply
from hotloop.core.problem import ProblemKind
from hotloop.core.verdict import Verdict
from hotloop.dashboard.attempt_record import AttemptRecord, Call, read_attempt
from hotloop.dashboard.badges import device_badge, verdict_badge
from hotloop.dashboard.listing import Place
from hotloop.dashboard.plot_errors import error_plot
from hotloop.dashboard.plot_roofline import roofline_plot
from hotloop.dashboard.plot_timing import timing_plot
from hotloop.dashboard.problem_record import attempt_record
from hotloop.dashboard.site import Site
from hotloop.dashboard.source_diff import FileDiff, compare_files
from hotloop.dashboard.state import RunState
from hotloop.dashboard.trouble import PageTrouble, readable
from hotloop.dashboard.verdict_tables import cases_table, detail_texts, told_to_model
from hotloop.llm.directory import prompt_text
from hotloop.prompts.feedback import failed_case
from hotloop.report import display
from hotloop.report.highlight import highlight_within
from hotloop.report.page import Fact
from hotloop.report.plot import Plot
from hotloop.report.sections import Badge, SourceText
from hotloop.report.tables import Table
from hotloop.report.verdict_facts import check_facts, timing_table, verdict_facts

SOURCE_BYTES = 600_000
"""HTML of one file."""
TEXT_CHARACTERS = 200_000
"""Of a prompt, a reasoning or a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPart:
    """What one verdict of an attempt says."""

    title: str
    badge: Badge
    facts: Sequence[Fact]
    checks: Sequence[Fact]
    message: str
    """The evidence's message, whole; empty where there is none."""
    details: Sequence[tuple[str, str]]
    told: str
    """What a model is told of it; empty where nothing."""
    picture: Plot | None
    """Where the numbers are wrong."""
    cases: Table | None
    timing: Table | None
    plots: Sequence[Plot]
    is_later: bool
    """Whether another verdict on the same attempt outranks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPart:
    """One question to the model."""

    title: str
    prompt: str
    reasoning: str
    reply: str
    failure: str


def attempt_page(site: Site, place: Place, number: int) -> tuple[str, dict[str, Any]]:
    """Return the template and its values.

    Raises:
        PageTrouble: there is no such attempt, or the run cannot be read.
    """
    state = site.runs.get(place.folder)
    with readable(place.folder):
        record = read_attempt(place.folder, number)
    if record is None:
        raise PageTrouble(404, "Not here", f"this run has no attempt {number}; go to its table")
    attempt = record.attempt
    ids = [a.id for a in state.attempts]
    final = state.finals.get(attempt.candidate_id or "")
    verdicts = [v for v in (final, attempt.verdict) if v is not None]
    return "attempt.html.jinja", {
        "title": f"Attempt {number} of {display.one_line(state.spec.problem_name)}",
        "place": place,
        "state": state,
        "attempt": attempt,
        "href": f"/run/{place.id}/attempt/",
        "badges_list": [verdict_badge(state, final or attempt.verdict), device_badge(state)],
        "is_best": state.best is not None and state.best.id == number,
        "before": max((n for n in ids if n < number), default=None),
        "after": min((n for n in ids if n > number), default=None),
        "children": [a.id for a in state.attempts if number in a.parents],
        "facts_list": _facts(attempt, state),
        "verdicts": [
            _verdict_part(v, record, state, is_later=v is not verdicts[0]) for v in verdicts
        ],
        "sources": _sources(record),
        "numbered": numbered,
        "trouble": display.one_line(record.trouble, limit=400),
        "parent_id": record.parent_id,
        "diffs": _diffs(record),
        "calls": [_call_part(call, len(record.calls)) for call in record.calls],
    }


def _facts(attempt: Attempt, state: RunState) -> list[Fact]:
    facts = [Fact("Action", display.one_line(attempt.action, limit=40))]
    if attempt.point:
        told = ", ".join(f"{name}={value}" for name, value in attempt.point.items())
        facts.append(Fact("Point", display.one_line(told, limit=400)))
    asked = attempt.asked
    if asked is not None:
        facts.append(Fact("Prompt", display.one_line(f"{asked.template}, sees {asked.sees}")))
        facts += [Fact("Move", display.one_line(asked.move))] if asked.move else []
        facts += [Fact("Idea", display.one_line(asked.idea, limit=1000))] if asked.idea else []
        facts += [Fact("Example", display.one_line(asked.example))] if asked.example else []
    facts.append(Fact("Proposed after", display.seconds(attempt.started_s)))
    if attempt.finished_s is not None:
        facts.append(Fact("Verdict after", display.seconds(attempt.finished_s)))
    if not state.is_timed and attempt.objective is not None:
        facts.append(Fact("Static cost", f"{attempt.objective:.4g} (no unit, no time)"))
    return facts + [Fact("Note", display.one_line(note, limit=400)) for note in attempt.notes]


def _verdict_part(
    verdict: Verdict, record: AttemptRecord, state: RunState, *, is_later: bool
) -> VerdictPart:
    problem = attempt_record(state, record.attempt)
    evidence = verdict.evidence
    is_attention = state.problem.kind is ProblemKind.ATTENTION
    picture = None
    if evidence is not None:
        picture = error_plot(evidence, failed_case(verdict), is_attention=is_attention)
    plots = []
    if verdict.passed and state.is_timed and not is_later:
        plots = [timing_plot(verdict, state), roofline_plot(verdict, state.info)]
    return VerdictPart(
        title=f"Verdict of the {verdict.tier.value} tier",
        badge=verdict_badge(state, verdict),
        facts=[
            # A fast verdict says that no final one is there; beside one that is not so.
            Fact("Tier", verdict.tier.value) if is_later and fact.label == "Tier" else fact
            for fact in verdict_facts(problem, verdict)
        ],
        checks=list(check_facts(verdict)),
        message="" if evidence is None else display.visible(evidence.message),
        details=detail_texts(evidence),
        told=told_to_model(verdict, state),
        picture=picture,
        cases=cases_table(verdict),
        timing=timing_table(verdict),
        plots=plots,
        is_later=is_later,
    )


def _sources(record: AttemptRecord) -> list[SourceText]:
    made = []
    for path, text in record.files.items():
        name = path if path.endswith((".py", ".cu", ".cuh", ".cpp", ".h")) else f"{path}.py"
        html, cut = highlight_within(display.visible(text), name, SOURCE_BYTES)
        made.append(SourceText(path=display.one_line(path, limit=80), html=html, cut=cut))
    return made


def _diffs(record: AttemptRecord) -> list[FileDiff]:
    if record.parent_id is None or not (record.files and record.parent_files):
        return []
    return compare_files(record.parent_files, record.files)


def _call_part(call: Call, count: int) -> CallPart:
    reply = call.reply
    title = f"Part {call.part + 1}" if count > 1 else "Prompt and reply"
    if reply is not None:
        title += f": {_reply_words(reply)}"
    return CallPart(
        title=title,
        prompt=_text(prompt_text(call.prompt)),
        reasoning="" if reply is None else _text(reply.reasoning),
        reply="" if reply is None else _text(reply.text),
        failure=display.one_line(call.failure or "", limit=1000),
    )


def _reply_words(reply: Reply) -> str:
    """Return who answered and what it cost, as far as that is known."""
    usage, known = reply.usage, [display.one_line(reply.model or "unknown", limit=80)]
    known += [f"{reply.seconds:.1f} s"] if reply.seconds >= 0.05 else []
    known += [f"{display.count(usage.prompt)} tokens in"] if usage.prompt is not None else []
    known += [f"{display.count(usage.completion)} out"] if usage.completion is not None else []
    known += [display.dollars(reply.cost_usd)] if reply.cost_usd is not None else []
    known += [f"ended by {reply.finish.value}"] if reply.finish is not Finish.UNKNOWN else []
    return ", ".join(known)


def _text(text: str) -> str:
    shown = display.visible(text[:TEXT_CHARACTERS])
    cut = len(text) - TEXT_CHARACTERS
    return f"{shown}\n... {cut:,} more characters: hotloop show has them" if cut > 0 else shown


def numbered(html: Markup) -> str:
    """Return the line numbers of a source, one a line."""
    return "\n".join(str(n) for n in range(1, html.count("\n") + 1 + (not html.endswith("\n"))))
