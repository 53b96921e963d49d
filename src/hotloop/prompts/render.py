"""Render the next prompt from templates: first, ideas, repair, optimise, regenerate.

Deterministic: the same data give the same text. Each prompt is complete in itself, so that a model
needs no earlier turn. `Sees` takes parts away, so that what each of them is worth can be measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

import jinja2

from hotloop.core.language import GLUON, LANGUAGES, TRITON, runs_on_cpu
from hotloop.core.problem import Problem
from hotloop.core.verdict import Status, Verdict
from hotloop.prompts import speed, untrusted
from hotloop.prompts.example import Example, example_values
from hotloop.prompts.feedback import Judged, make_feedback
from hotloop.prompts.findings import Finding
from hotloop.prompts.gluon_moves import made_in
from hotloop.prompts.gluon_names import gluon_names
from hotloop.prompts.memory import Memory
from hotloop.prompts.task import (
    Task,
    captured_names,
    device_lines,
    interface_kind,
    policy_lines,
    shown_source,
    size_lines,
)
from hotloop.prompts.tunables import read_tunables

MAX_FINDINGS = 4
IDEAS = 4
NO_MEMORY = Memory()
MOVE_CHARS = 160
MAX_MENDS, MEND_CHARS = 4, 300
REPLY_LINES, REPLY_CHARS = 200, 8000
SHOWN_REPLIES = frozenset({"no_entry", "no_description", "bad_description", "wrong_language"})
"""Kinds of replies without a kernel of which most is right: the next prompt shows them."""


class Sees(IntEnum):
    """What a model sees of earlier attempts; each level has all of those below."""

    NOTHING = 0
    CODE = 1
    """Its last code."""
    EXECUTION = 2
    """And the verdict on it, without times."""
    PERFORMANCE = 3
    """And times, resources and what to try."""
    MEMORY = 4
    """And what was tried, failed and won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One rendered prompt."""

    text: str
    template: str
    """`first`, `ideas`, `repair`, `optimise`, `regenerate`."""
    template_digest: str
    """16 hex digits over all templates: which version of the wording made this prompt."""
    move: str | None = None
    """Key of the move that it asks for (`speed.Move`); None when it asks for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What prompts about an earlier attempt need."""

    judged: Judged
    findings: tuple[Finding, ...] = ()
    """Of the static analysis of the candidate."""
    memory: Memory = NO_MEMORY
    sees: Sees = Sees.MEMORY
    wants_diff: bool = False
    """Whether the answer may be a unified diff."""
    lapse: Verdict | None = None
    """The verdict on the last reply to this, where it held no kernel."""
    beats: str = ""
    """The best correct kernel so far, in a few words, where this one is an attempt to beat it."""
    mends: tuple[str, ...] = ()
    """What earlier repairs in this line did and how they ended, oldest first."""
    example: Example | None = None
    """A verified kernel of another problem, for a new design."""


def first_prompt(
    task: Task,
    *,
    idea: str | None = None,
    memory: Memory = NO_MEMORY,
    lapse: Verdict | None = None,
    example: Example | None = None,
) -> Prompt:
    """Return the first prompt.

    Args:
        task: what every prompt is about.
        idea: the one that this draft is to carry out.
        memory: what was tried before.
        lapse: the verdict on the last reply to this, where it held no kernel.
        example: a verified kernel of another problem.
    """
    values = {
        "example": example_values(example),
        "idea": untrusted.one_line(idea, 1000) if idea else None,
        "memory": memory.lines(),
        "lapse": _lapse(lapse, task.problem) if lapse is not None else None,
    }
    return _render("first", task, values)


def ideas_prompt(task: Task, *, count: int = IDEAS, memory: Memory = NO_MEMORY) -> Prompt:
    """Return the prompt that asks for `count` ideas in words, without code."""
    return _render("ideas", task, {"count": count, "memory": memory.lines()})


def repair_prompt(task: Task, context: Context) -> Prompt:
    """Return the prompt for a candidate that failed; without its code and verdict, a first one."""
    if context.sees is Sees.NOTHING:
        return first_prompt(task)
    return _render("repair", task, _about(context))


def optimise_prompt(task: Task, context: Context) -> Prompt:
    """Return the prompt for a candidate that passed: one move that was not asked for yet."""
    if context.sees is Sees.NOTHING:
        return first_prompt(task)
    known = _moves(context) if context.sees >= Sees.PERFORMANCE else []
    asked = context.memory.asked
    move = next((move for move in known if move.key not in asked), None)
    values = _about(context) | {
        "move": move.text if move else None,
        "asked": [_told_move(m) for m in known] if context.sees >= Sees.MEMORY else [],
    }
    return _render("optimise", task, values, move=move.key if move else None)


def regenerate_prompt(task: Task, context: Context) -> Prompt:
    """Return the prompt for a new design after a plateau of the candidate in `context`."""
    if context.sees is Sees.NOTHING:
        return first_prompt(task)
    values = _about(context) | {"example": example_values(context.example)}
    return _render("regenerate", task, values)


def _moves(context: Context) -> list[speed.Move]:
    """Return the moves for this kernel, without the advice to declare what it cannot or does."""
    judged = context.judged
    language = judged.candidate.language if judged.candidate is not None else TRITON.name
    source = judged.candidate.text() if judged.candidate is not None else ""
    made = made_in(source) if language == GLUON.name else frozenset()
    known = [m for m in speed.moves(judged.verdict, judged.info, language) if m.key not in made]
    is_python = judged.candidate is None or judged.candidate.entry.endswith(".py")
    if is_python and read_tunables(source).space is None:
        return known
    return [move for move in known if move.key != "tunables"]


def _told_move(move: speed.Move) -> str:
    return untrusted.one_line(move.text, MOVE_CHARS)


def _lapse(verdict: Verdict, problem: Problem) -> str:
    """Return what was wrong with a reply without a kernel, with its end where that helps."""
    judged = Judged(verdict=verdict, candidate=None, problem=problem)
    told = make_feedback(judged).text
    reply = judged.evidence.details.get("reply")
    if judged.evidence.details.get("reason") not in SHOWN_REPLIES or not isinstance(reply, str):
        return told
    shown = untrusted.quoted(reply, lines=REPLY_LINES, chars=REPLY_CHARS)
    return f"{told}\n\nIt was (nobody has judged it; use what is right in it):\n{shown}"


def _about(context: Context) -> dict[str, Any]:
    judged, sees = context.judged, context.sees
    feedback = make_feedback(judged)
    passed_untold = judged.verdict.status is Status.PASSED and sees < Sees.PERFORMANCE
    has_verdict = sees >= Sees.EXECUTION
    return {
        "code": _sources(judged),
        "headline": feedback.headline if has_verdict else None,
        "feedback": feedback.text if has_verdict and not passed_untold else None,
        "findings": _finding_lines(context.findings) if has_verdict else [],
        "memory": context.memory.lines() if sees >= Sees.MEMORY else [],
        "wants_diff": context.wants_diff and judged.candidate is not None,
        "has_code": judged.candidate is not None,
        "pins": _pins(judged),
        "passed": judged.verdict.passed,
        "shows_times": sees >= Sees.PERFORMANCE,
        "lapse": _lapse(context.lapse, judged.problem) if context.lapse and has_verdict else None,
        "mends": _mends(context) if sees >= Sees.MEMORY else [],
        "beats": untrusted.one_line(context.beats, 120) if sees >= Sees.MEMORY else "",
    }


def _mends(context: Context) -> list[str]:
    return [untrusted.one_line(mend, MEND_CHARS) for mend in context.mends[-MAX_MENDS:]]


def _sources(judged: Judged) -> list[dict[str, str]]:
    if judged.candidate is None:
        return []
    return [
        {
            "path": untrusted.one_line(source.path, 80),
            "block": untrusted.code(
                source.text, "python" if source.path.endswith(".py") else "cuda"
            ),
        }
        for source in judged.candidate.sources
    ]


def _pins(judged: Judged) -> str:
    """Return the values that a sweep put in place of the shown source's own."""
    pins = judged.candidate.pins if judged.candidate is not None else {}
    return untrusted.one_line(", ".join(f"{name} = {value!r}" for name, value in pins.items()))


def _finding_lines(findings: Sequence[Finding]) -> list[str]:
    return [f"line {f.line}: {untrusted.one_line(f.message)}" for f in findings[:MAX_FINDINGS]]


def _render(
    template: str, task: Task, values: Mapping[str, Any], *, move: str | None = None
) -> Prompt:
    problem = task.problem
    known: dict[str, Any] = {
        "name": problem.name,
        "words": problem.prompt,
        "reference": None if problem.prompt else untrusted.code(shown_source(problem), "python"),
        "kind": interface_kind(problem),
        "language": task.language,
        "language_title": LANGUAGES[task.language].title,
        "gluon": gluon_names(task.info.environment.get("triton")),
        "buffers": captured_names(task.info),
        "is_paged": task.info.attention is not None and task.info.attention.page_size is not None,
        "sizes": size_lines(task.info),
        "policy": policy_lines(problem.policy, task.info),
        "device": device_lines(task.info, task.language),
        "on_gpu": task.info.device == "cuda",
        "is_run": task.info.device == "cuda" or runs_on_cpu(task.language),
    }
    text = _environment().get_template(f"{template}.md.jinja").render({**known, **values})
    return Prompt(text=_tidy(text), template=template, template_digest=template_digest(), move=move)


def _tidy(text: str) -> str:
    return text.strip("\n") + "\n"


@cache
def template_digest() -> str:
    """Return 16 hex digits over the text of all templates."""
    environment = _environment()
    assert environment.loader is not None
    names = sorted(environment.list_templates(extensions=["jinja"]))
    texts = [environment.loader.get_source(environment, name)[0] for name in names]
    return hashlib.sha256("\0".join([*names, *texts]).encode()).hexdigest()[:16]


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("hotloop.prompts", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the output is Markdown for a model, not HTML
    )
