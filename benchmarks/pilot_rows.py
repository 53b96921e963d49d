"""One row of the pilot: what the journal of a run holds.

A speed or a correct kernel counts only with a PASSED final verdict. A run that has none is a row
too: `NO_KERNEL`, `NO_FINAL` (the final verdict has not come), or `FINAL_<status>` (it failed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from benchmarks import pilot_tokens
from benchmarks.attention_run import summarise_correctness
from benchmarks.pilot_runs import PilotRun
from benchmarks.results_file import Row
from hotloop.core.attempt import FREE_ACTIONS, Attempt
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Verdict
from hotloop.engine.result import best_attempt
from hotloop.llm.call_notes import INTENT, RESPONSE
from hotloop.prompts.recall import NO_TRIES
from hotloop.verify.static_rules import check_candidate

UNKNOWN = "unknown"
ENDED = frozenset({"candidates", "calls", "exhausted"})
"""Reasons to stop of a run that has nothing left to do."""
SIZES = ("B", "H", "Hkv", "S", "Skv", "D", "dtype")


class Journal(Protocol):
    """What a row is read from: a `RunReader`, or any other view of a run's journal."""

    def problem(self) -> Problem: ...  # noqa: D102
    def attempts(self) -> Sequence[Attempt]: ...  # noqa: D102
    def notes(self, kind: str) -> Sequence[Mapping[str, Any]]: ...  # noqa: D102
    def candidate(self, candidate_id: str) -> Candidate: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class _Found:
    """What a journal holds, read once."""

    journal: Journal
    attempts: Sequence[Attempt]
    calls: Sequence[Attempt]
    """Attempts that a model was asked for, with their verdicts, in order."""
    finals: Mapping[str, Verdict]
    best: Attempt | None
    info: ProblemInfo | None


def row_of(run: PilotRun, journal: Journal, tokens: pilot_tokens.Counter) -> Row:
    """Return the row of one run."""
    found = _read(journal)
    final = _final(found)
    problem = run.problem
    row: Row = {
        "problem": problem.name,
        "row": run.name,
        "level": problem.level or None,
        "problem_id": problem.problem_id,
        "title": problem.title,
        "operator_class": problem.operator_class,
        "workload": _workload(found.info),
        "generator": "model",
        "model": _model(journal),
        "language": run.language,
        "arm": run.arm.name,
        "sees": run.arm.sees,
        "status": _status(found, final),
        "tier": "final" if final is not None else None,
        "is_finished": _is_finished(found),
        "calls": len(found.calls),
        "rounds_to_first_correct": _first_correct(found),
        "correct_after": _correct_after(found),
        "fast_ms": _fast_ms(found),
        "best_attempt": found.best.id if found.best else None,
        "rankable": found.info.rankable if found.info else None,
        "rankable_notes": list(found.info.notes) if found.info else [],
        "setup_baselines_ms": dict(found.info.baselines_ms) if found.info else {},
        "library_anchor": _is_anchored(found),
        "failures": _failures(found),
        "verdicts": dict(Counter(a.verdict.status.value for a in found.calls if a.verdict)),
        "tokens": _tokens(journal, tokens),
        "correctness": None,
        "performance": None,
        "environment": dict(found.info.environment) if found.info else {},
        "error": _error(journal),
    }
    if final is None:
        return row
    row |= {"environment": dict(final.environment) or row["environment"], "mode": final.mode}
    row["correctness"] = summarise_correctness(to_json(final.correctness))
    row["performance"] = to_json(final.performance)
    return row


def _read(journal: Journal) -> _Found:
    attempts = journal.attempts()
    finals = {
        str(note["candidate_id"]): from_json(Verdict, note["verdict"])
        for note in journal.notes("final")
    }
    setups = journal.notes("setup")
    return _Found(
        journal=journal,
        attempts=attempts,
        calls=[a for a in attempts if a.action not in FREE_ACTIONS and a.verdict is not None],
        finals=finals,
        best=best_attempt(attempts, finals),
        info=from_json(ProblemInfo, setups[-1]["info"]) if setups else None,
    )


def _final(found: _Found) -> Verdict | None:
    return found.finals.get(found.best.candidate_id or "") if found.best else None


def _status(found: _Found, final: Verdict | None) -> str:
    if final is not None:
        return final.status.value if final.passed else f"FINAL_{final.status.value}"
    return "NO_KERNEL" if found.best is None else "NO_FINAL"


def _is_finished(found: _Found) -> bool:
    stops = found.journal.notes("stopped")
    is_open = any(attempt.verdict is None for attempt in found.attempts)
    return bool(stops) and stops[-1]["reason"] in ENDED and not is_open


def _error(journal: Journal) -> str | None:
    stops = journal.notes("stopped")
    return str(stops[-1]["message"]) if stops and stops[-1]["reason"] == "failed" else None


def _is_correct(attempt: Attempt, finals: Mapping[str, Verdict]) -> bool:
    """Whether it passed the fast tier, and the final one if it was tried there."""
    final = finals.get(attempt.candidate_id or "")
    is_fast = attempt.verdict is not None and attempt.verdict.passed
    return is_fast and (final is None or final.passed)


def _first_correct(found: _Found) -> int | None:
    rounds = enumerate(found.calls, 1)
    return next((n for n, a in rounds if _is_correct(a, found.finals)), None)


def _correct_after(found: _Found) -> list[bool]:
    """Return for each number of calls whether one of them had brought a correct kernel."""
    first = _first_correct(found)
    return [first is not None and n >= first for n in range(1, len(found.calls) + 1)]


def _fast_ms(found: _Found) -> list[float | None]:
    """Return the fast tier's time of each call's kernel; None where there is no correct one."""
    return [
        a.verdict.performance.latency_ms
        if a.verdict is not None
        and a.verdict.performance is not None
        and _is_correct(a, found.finals)
        else None
        for a in found.calls
    ]


def _failures(found: _Found) -> list[Row]:
    return [
        {"attempt": a.id, "action": a.action} | failure_of(verdict)
        for a in found.calls
        for verdict in (a.verdict, found.finals.get(a.candidate_id or ""))
        if verdict is not None and not verdict.passed
    ]


def failure_of(verdict: Verdict) -> Row:
    """Return the class of a failure: status, kind of evidence, and the rule that was broken."""
    assert verdict.evidence is not None, "what did not pass has evidence"
    rule = verdict.evidence.details.get("rule")
    if rule is None and verdict.correctness is not None:
        rule = next((c.rule for c in verdict.correctness.cases if not c.passed), None)
    return {
        "status": verdict.status.value,
        "tier": verdict.tier.value,
        "kind": verdict.evidence.kind,
        "rule": rule,
        "message": verdict.evidence.message.strip().split("\n")[0][:200],
    }


def _is_anchored(found: _Found) -> bool | None:
    """Return whether the best kernel leaves a part of the work to a library; None without one.

    Read from its source, as the rule reads it that forbids such calls where a policy does.
    """
    if found.best is None or found.best.candidate_id is None:
        return None
    candidate = found.journal.candidate(found.best.candidate_id)
    policy = replace(found.journal.problem().policy, library_calls="none")
    broken = check_candidate(candidate, policy)
    return broken is not None and broken.rule == "library_call"


def _workload(info: ProblemInfo | None) -> Row:
    if info is None or info.attention is None:
        return {"name": "nominal"}
    sizes = to_json(info.attention)
    return {name: sizes[name] for name in SIZES if name in sizes}


def _model(journal: Journal) -> str:
    names = {str(note["reply"]["model"]) for note in journal.notes(RESPONSE)}
    return ", ".join(sorted(names)) or UNKNOWN


def _tokens(journal: Journal, tokens: pilot_tokens.Counter) -> Row:
    prompts = {str(n["prompt_id"]): n["prompt"] for n in journal.notes(INTENT)}
    replies = journal.notes(RESPONSE)
    size = {
        prompt_id: sum(tokens.count(message["text"]) for message in prompt["messages"])
        for prompt_id, prompt in prompts.items()
    }
    return {
        "unit": tokens.unit,
        "answered_calls": len(replies),
        "prompt": sum(size.get(str(note["prompt_id"]), 0) for note in replies),
        "reply": sum(tokens.count(note["reply"]["text"]) for note in replies),
        "reasoning": UNKNOWN,
    }


EARLIER = ("status", "tier", "mode", "best_attempt", "correctness", "performance", "environment")
"""What a final verdict says of a row."""


def with_earlier_final(row: Row, earlier: Row | None) -> Row:
    """Return the row with the final verdict of an earlier report where it has none of its own.

    That verdict is of the kernel that was the best then: one of the same run's first calls.
    """
    if row["status"] != "NO_FINAL" or earlier is None or earlier["status"] != "PASSED":
        return row
    return row | {name: earlier[name] for name in EARLIER} | {"final_of_earlier_report": True}


def is_no_try(failure: Mapping[str, Any]) -> bool:
    """Whether a failure is of the call itself: no kernel was tried."""
    return failure["kind"] in NO_TRIES
