"""One attempt of a stored run: verdict and evidence, its source or what changed, prompt and reply.

Sources, evidence and replies are text that nobody has read: control characters are taken out of
everything before it reaches a terminal.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.cli import wording
from hotloop.cli.calls import StoredCall, calls_of
from hotloop.cli.run_text import end_of, never_judged
from hotloop.cli.verdict_text import verdict_text
from hotloop.cli.wrong_values import SAID, wrong_values
from hotloop.core.attempt import Action, Attempt
from hotloop.core.candidate import Candidate
from hotloop.core.problem import ProblemKind
from hotloop.core.verdict import Evidence, Verdict
from hotloop.report.endings import NO_VERDICT
from hotloop.store.reader import RunReader

NAME_WIDTH = 16
DETAIL_LINES = 40
"""Of one detail of the evidence: a compiler's log can be long; --json has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What of an attempt is to be shown; with none of them, its source."""

    diff: bool = False
    prompt: bool = False
    reply: bool = False


def attempt_record(reader: RunReader, attempt: Attempt, parts: Parts) -> dict[str, Any]:
    """Return the JSON object of `show RUN --attempt N --json`."""
    calls = calls_of(reader, attempt.id) if parts.prompt or parts.reply else []
    candidate = _candidate(reader, attempt)
    return {
        "attempt": attempt,
        "sources": _sources(candidate),
        "pins": None if candidate is None else candidate.pins,
        "diff": _diff(reader, attempt) if parts.diff else None,
        "prompts": [c.prompt_text for c in calls] if parts.prompt else None,
        "replies": [c.reply for c in calls] if parts.reply else None,
    }


def attempt_text(reader: RunReader, attempt: Attempt, parts: Parts) -> str:
    """Return the attempt's choices and verdict, then the parts that are asked for."""
    lines = [_headline(attempt), *_asked(attempt)]
    lines.append(verdict_text(attempt.verdict) if attempt.verdict else _unjudged(reader))
    if attempt.verdict is not None and attempt.verdict.evidence is not None:
        lines += _wrong_values(reader, attempt.verdict) or _evidence(attempt.verdict.evidence)
    lines += [f"note        {note}" for note in attempt.notes]
    calls = calls_of(reader, attempt.id) if parts.prompt or parts.reply else []
    if parts.prompt:
        lines += [f"--- prompt{_part(c)}\n{c.prompt_text}" for c in calls] or ["no prompt was sent"]
    if parts.reply:
        lines += [_reply(c) for c in calls] or ["no reply: no model was asked"]
    if parts.diff:
        lines.append(_diff(reader, attempt) or "no difference to anything before it")
    if parts == Parts():
        lines += [f"--- {path}\n{text}" for path, text in _files(reader, attempt).items()]
    return "\n".join(wording.printable(line) for line in lines)


def _unjudged(reader: RunReader) -> str:
    ended = end_of(reader)
    return NO_VERDICT if ended is None else never_judged(ended)


def _headline(attempt: Attempt) -> str:
    parents = f" of {', '.join(map(str, attempt.parents))}" if attempt.parents else ""
    point = ", ".join(f"{k}={v}" for k, v in attempt.point.items())
    return f"attempt {attempt.id} ({attempt.action}{parents}) {point}".rstrip()


def _asked(attempt: Attempt) -> list[str]:
    asked = attempt.asked
    if asked is None:
        return []
    lines = [f"prompt      {asked.template}, sees {asked.sees}, wording {asked.template_digest}"]
    lines += [f"move        {asked.move}"] if asked.move else []
    return [*lines, f"idea        {wording.plain(asked.idea, limit=1000)}"] if asked.idea else lines


def _wrong_values(reader: RunReader, verdict: Verdict) -> list[str]:
    """Return wrong values in words and the details beside them; empty for other failures."""
    is_attention = reader.problem().kind is ProblemKind.ATTENTION
    told = wrong_values(verdict, is_attention=is_attention)
    if not told or verdict.evidence is None:
        return []
    labels = ["", *(label for label, _ in told)]
    lines = [
        f"  {'' if label == former else label:{NAME_WIDTH}}  {text}"
        for former, (label, text) in zip(labels, told, strict=False)
    ]
    return [*lines, *_evidence(verdict.evidence, without=SAID)]


def _evidence(evidence: Evidence, *, without: frozenset[str] = frozenset()) -> list[str]:
    """Return the whole message and the details; the headline has but one line of them."""
    lines = [f"evidence    {evidence.message}"] if "\n" in evidence.message else []
    for name, value in evidence.details.items():
        if name in without:
            continue
        text = value if isinstance(value, str) else _told(value)
        shown = text.splitlines()
        if len(shown) < 2:
            lines += [f"  {wording.plain(name, limit=40):{NAME_WIDTH}}  {text}"] if text else []
            continue
        cut = len(shown) - DETAIL_LINES
        more = [f"... {cut} lines more, in --json"] if cut > 0 else []
        lines.append(f"{wording.plain(name, limit=40)}:")
        lines += [f"    {line}" for line in (*shown[:DETAIL_LINES], *more)]
    return lines


def _told(value: Any) -> str:
    """Return a detail without the marks of JSON, numbers to four digits; empty for nothing."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_told(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(
            f"({_told(v)})" if isinstance(v, (list, dict)) else _told(v) for v in value
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _part(call: StoredCall) -> str:
    return f", part {call.key.part + 1}" if call.key.part else ""


def _reply(call: StoredCall) -> str:
    reply = call.reply
    if reply is None:
        return f"--- no reply{_part(call)}: {call.failure or 'it is awaited'}"
    total = None
    if reply.usage.prompt is not None and reply.usage.completion is not None:
        total = reply.usage.prompt + reply.usage.completion
    who = wording.plain(reply.model, limit=80) or "unknown"
    head = (
        f"--- reply{_part(call)} of {who} in {reply.seconds:.1f} s, "
        f"{wording.costs(tokens=total, usd=reply.cost_usd)}, ended by {reply.finish.value}"
    )
    thoughts = f"\n--- reasoning\n{reply.reasoning}\n--- answer" if reply.reasoning else ""
    return f"{head}{thoughts}\n{reply.text}"


def _candidate(reader: RunReader, attempt: Attempt) -> Candidate | None:
    return None if attempt.candidate_id is None else reader.candidate(attempt.candidate_id)


def _sources(candidate: Candidate | None) -> dict[str, str]:
    return {} if candidate is None else {s.path: s.text for s in candidate.sources}


def _files(reader: RunReader, attempt: Attempt) -> dict[str, str]:
    """Return the sources and, as one more, the pinned values: all that a sweep changes."""
    candidate = _candidate(reader, attempt)
    pins = {} if candidate is None else candidate.pins
    lines = "".join(f"{name} = {value!r}\n" for name, value in pins.items())
    return _sources(candidate) | ({"pinned values": lines} if lines else {})


def _diff(reader: RunReader, attempt: Attempt) -> str:
    """Return a unified diff from the attempt's parent; of a schedule, from the one before it."""
    earlier = [a for a in reader.attempts() if a.id < attempt.id]
    former = [a for a in earlier if a.id in attempt.parents]
    if not attempt.parents and attempt.action == Action.SCHEDULE:
        former = earlier
    if not former:
        return ""
    old, new = _files(reader, former[-1]), _files(reader, attempt)
    lines: list[str] = []
    for path in sorted(old | new):
        lines += difflib.unified_diff(
            old.get(path, "").splitlines(),
            new.get(path, "").splitlines(),
            f"attempt {former[-1].id}/{path}",
            f"attempt {attempt.id}/{path}",
            lineterm="",
        )
    return "\n".join(lines)
