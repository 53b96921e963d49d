"""What the tools answer: texts for an agent, capped, without what is held out."""

from __future__ import annotations

from pathlib import Path

from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import from_json
from hotloop.core.units import format_ms
from hotloop.core.verdict import Verdict
from hotloop.problems.precision import describe_precision
from hotloop.prompts.feedback import Judged, make_feedback
from hotloop.prompts.roofline import describe_bound
from hotloop.prompts.task import shown_source
from hotloop.store.reader import RunReader

MAX_CHARS = 40_000
"""Of one answer: what an agent can read without losing sight of its task."""


def capped(text: str, *, limit: int = MAX_CHARS) -> str:
    """Return a text, cut in its middle where it is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[... {left_out:,} characters left out ...]\n{text[-half:]}"


def problem_text(problem: Problem, info: ProblemInfo) -> str:
    """Return a loaded problem: what must be computed, what is known of its speed, its audit.

    Its source is shown as in a model's prompt: the user's own words, or the file without the
    statements that say how it is judged.
    """
    lines = [f"{problem.name} on {info.device}"]
    audit = info.audit
    lines += [f"not ranked: {text}" for text in (audit.reasons if audit is not None else ())]
    if info.device == "cuda":
        lines += [f"baseline {name}: {format_ms(ms)}" for name, ms in info.baselines_ms.items()]
        told = describe_bound(info)
        lines += [told] if told is not None else []
    else:
        lines.append("on a CPU kernels are checked and compiled, never timed")
    shown = problem.prompt or f"```python\n{shown_source(problem)}\n```"
    return capped("\n".join([*lines, "", shown]))


def verdict_answer(
    verdict: Verdict, candidate: Candidate, problem: Problem, info: ProblemInfo | None
) -> str:
    """Return a verdict as a model sees it: status, what is wrong and where, how fast it is."""
    judged = Judged(verdict=verdict, candidate=candidate, problem=problem, info=info)
    feedback = make_feedback(judged)
    head = f"{verdict.status.value} ({verdict.tier.value} tier): {feedback.headline}"
    return capped(f"{head}\n\n{feedback.text}".strip())


def with_precision_line(text: str, problem: Problem, asked: str | None) -> str:
    """Return an answer that ends with the line of `--precision`, where one was asked for."""
    return capped(f"{text}\n\n{describe_precision(problem)}") if asked else text


def attempt_answer(reader: RunReader, attempt: Attempt) -> str:
    """Return an attempt: its source and its verdict."""
    if attempt.candidate_id is None or attempt.verdict is None:
        return f"attempt {attempt.id}: no verdict yet"
    candidate = reader.candidate(attempt.candidate_id)
    verdict = verdict_answer(attempt.verdict, candidate, reader.problem(), info_of(reader))
    return capped(f"attempt {attempt.id}\n\n{verdict}\n\n{source_text(candidate)}")


def source_text(candidate: Candidate) -> str:
    """Return a candidate's files, each in a fenced block."""
    blocks = []
    for file in candidate.sources:
        kind = "python" if Path(file.path).suffix == ".py" else "cuda"
        blocks.append(f"{file.path}\n```{kind}\n{file.text}\n```")
    if candidate.pins:
        blocks.append(f"tunables: {dict(candidate.pins)}")
    return "\n\n".join(blocks)


def info_of(reader: RunReader) -> ProblemInfo | None:
    """Return what a run's judge found of its problem; None before it did."""
    setups = reader.notes("setup")
    return from_json(ProblemInfo, setups[-1]["info"]) if setups else None
