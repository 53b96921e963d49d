"""A stored run for people and as JSON: its attempts, one attempt's source, what changed in it."""

from __future__ import annotations

import difflib
from typing import Any

from hotloop.cli import wording
from hotloop.cli.verdict_text import verdict_text
from hotloop.core.attempt import Attempt
from hotloop.core.record import from_json
from hotloop.core.verdict import Verdict
from hotloop.engine.result import best_attempt
from hotloop.errors import ConfigError
from hotloop.store.reader import RunReader


def run_record(reader: RunReader) -> dict[str, Any]:
    """Return the JSON object of `show RUN --json`."""
    best, final = _best(reader)
    stops = reader.notes("stopped")
    return {
        "folder": str(reader.folder),
        "spec": reader.spec(),
        "spent_s": reader.spent_s(),
        "stop_reason": stops[-1]["reason"] if stops else None,
        "best_attempt_id": None if best is None else best.id,
        "final": final,
        "attempts": reader.attempts(),
    }


def run_table(reader: RunReader) -> str:
    """Return the run's headline and one line an attempt."""
    spec, attempts = reader.spec(), reader.attempts()
    timed = spec.device == "cuda"
    head = f"{spec.problem_name} on {spec.device}: {len(attempts)} attempts, {spec.generator}, "
    lines = [head + f"{spec.strategy}, seed {spec.seed}, {reader.spent_s():.0f} s spent"]
    cells = [wording.columns(timed=timed), *(wording.row(a, None, timed=timed) for a in attempts)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines += ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    best, final = _best(reader)
    if best is not None:
        verdict = final or best.verdict
        assert verdict is not None, "the best attempt has a verdict"
        lines.append(f"best: attempt {best.id}: {wording.outcome(verdict)}")
    return "\n".join(line.rstrip() for line in lines)


def find_attempt(reader: RunReader, wanted: int | None) -> Attempt:
    """Return the attempt with that id; the best one for None.

    Raises:
        ConfigError: there is no such attempt, or nothing passed yet.
    """
    attempts = {a.id: a for a in reader.attempts()}
    if wanted is None:
        best, _ = _best(reader)
        if best is None:
            raise ConfigError(f"{reader.folder}: no attempt passed yet; give --attempt N")
        return best
    if wanted not in attempts:
        known = f"{min(attempts)} to {max(attempts)}" if attempts else "none yet"
        raise ConfigError(f"--attempt {wanted}: {reader.folder} has no such attempt ({known})")
    return attempts[wanted]


def attempt_record(reader: RunReader, attempt: Attempt, *, diff: bool) -> dict[str, Any]:
    """Return the JSON object of `show RUN --attempt N --json`."""
    return {
        "attempt": attempt,
        "sources": _sources(reader, attempt),
        "diff": _diff(reader, attempt) if diff else None,
    }


def attempt_text(reader: RunReader, attempt: Attempt, *, diff: bool) -> str:
    """Return the attempt's choices and verdict, then its source or what changed in it."""
    point = ", ".join(f"{k}={v}" for k, v in attempt.point.items())
    lines = [f"attempt {attempt.id} ({attempt.action}) {point}".rstrip()]
    lines.append(verdict_text(attempt.verdict) if attempt.verdict else "no verdict yet")
    if diff:
        lines.append(_diff(reader, attempt) or "no difference")
    else:
        lines += [f"--- {path}\n{text}" for path, text in _sources(reader, attempt).items()]
    return "\n".join(wording.printable(line) for line in lines)


def _best(reader: RunReader) -> tuple[Attempt | None, Verdict | None]:
    finals = {
        str(note["candidate_id"]): from_json(Verdict, note["verdict"])
        for note in reader.notes("final")
    }
    best = best_attempt(reader.attempts(), finals)
    return best, finals.get(best.candidate_id or "") if best is not None else None


def _sources(reader: RunReader, attempt: Attempt) -> dict[str, str]:
    if attempt.candidate_id is None:
        return {}
    return {s.path: s.text for s in reader.candidate(attempt.candidate_id).sources}


def _diff(reader: RunReader, attempt: Attempt) -> str:
    """Return a unified diff from the attempt's parent, or from the attempt before it."""
    earlier = [a for a in reader.attempts() if a.id < attempt.id]
    parents = [a for a in earlier if a.id in attempt.parents]
    former = (parents or earlier)[-1:]
    if not former:
        return ""
    old, new = _sources(reader, former[0]), _sources(reader, attempt)
    lines: list[str] = []
    for path in sorted(old | new):
        lines += difflib.unified_diff(
            old.get(path, "").splitlines(),
            new.get(path, "").splitlines(),
            f"attempt {former[0].id}/{path}",
            f"attempt {attempt.id}/{path}",
            lineterm="",
        )
    return "\n".join(lines)
