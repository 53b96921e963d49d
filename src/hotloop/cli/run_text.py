"""A stored run for people and as JSON: its attempts, what its calls cost, what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.cli import wording
from hotloop.cli.audit import audit_line
from hotloop.cli.calls import CallTotals, totals
from hotloop.cli.earlier_run import LARGER
from hotloop.cli.verdict_text import check_lines
from hotloop.core.attempt import Attempt
from hotloop.core.record import from_json
from hotloop.core.verdict import Verdict
from hotloop.engine import StopReason
from hotloop.engine.result import best_attempt
from hotloop.errors import ConfigError
from hotloop.plan import MODEL
from hotloop.report.endings import NEVER_JUDGED, is_ended
from hotloop.store.lock import last_words
from hotloop.store.reader import RunReader
from hotloop.wiring import stored_audit


def run_record(reader: RunReader) -> dict[str, Any]:
    """Return the JSON object of `show RUN --json`."""
    best, final = _best(reader)
    attempts, stop = reader.attempts(), _last_stop(reader)
    return {
        "folder": str(reader.folder),
        "spec": reader.spec(),
        "spent_s": reader.spent_s(),
        "stop_reason": stop.get("reason"),
        "waiting": list(stop.get("waiting") or ()),
        "calls": totals(reader) if reader.spec().generator == MODEL else None,
        "audit": stored_audit(reader.notes("setup")),
        "best_attempt_id": None if best is None else best.id,
        "final": final,
        "never_judged": [] if end_of(reader) is None else _open(attempts),
        "attempts": attempts,
    }


def run_table(reader: RunReader) -> str:
    """Return the run's headline and one line an attempt."""
    spec, attempts = reader.spec(), reader.attempts()
    timed = spec.device == "cuda"
    head = f"{spec.problem_name} on {spec.device}: {len(attempts)} attempts, {spec.generator}, "
    lines = [head + f"{spec.strategy}, seed {spec.seed}, {reader.spent_s():.0f} s spent"]
    actions = wording.has_actions(attempts)
    ended = end_of(reader)
    phase = None if ended is None else NEVER_JUDGED
    cells = [
        wording.columns(timed=timed, actions=actions),
        *(wording.row(a, phase, timed=timed, actions=actions) for a in attempts),
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines += ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    best, final = _best(reader)
    if best is not None:
        verdict = final or best.verdict
        assert verdict is not None, "the best attempt has a verdict"
        lines.append(f"best: attempt {best.id}: {wording.outcome(verdict)}")
        lines += check_lines(verdict)
    told = audit_line(stored_audit(reader.notes("setup")))
    lines += [told] if told is not None else []
    if spec.generator == MODEL:
        lines += _calls(totals(reader), str(spec.options.get("model")))
    lines += _failed(reader) + _waiting(_last_stop(reader))
    never = len(_open(attempts))
    if ended is not None and never:
        lines.append(f"{never} attempt(s) {never_judged(ended)}")
    return "\n".join(line.rstrip() for line in lines)


def _calls(found: CallTotals, model: str) -> list[str]:
    names = ", ".join(wording.plain(name, limit=80) for name in found.answered_by[:3])
    told = f" (answers say: {names})" if names and names != model else ""
    costs = wording.costs(tokens=found.tokens, usd=found.usd)
    return [
        f"model: {wording.plain(model)}{told}",
        f"calls: {found.calls}, answered in {found.call_s:.0f} s together, {costs}",
    ]


def _failed(reader: RunReader) -> list[str]:
    stop, words = _end(reader), last_words(reader.folder)
    if not words and stop.get("reason") != StopReason.FAILED:
        return []
    told = wording.plain(words or str(stop.get("message") or "it is not known why"), limit=400)
    return [f"failed: {told}"]


def _waiting(stop: Mapping[str, Any]) -> list[str]:
    if stop.get("reason") != StopReason.WAITING:
        return []
    files = [wording.plain(str(name), limit=300) for name in stop.get("waiting") or ()]
    if not files:
        told = wording.plain(str(stop.get("message") or "an answer from outside"), limit=400)
        return [f"waiting: {told}"]
    return [f"waiting for answers from outside: {len(files)}", *(f"  {name}" for name in files)]


def _open(attempts: Sequence[Attempt]) -> list[int]:
    return [attempt.id for attempt in attempts if attempt.verdict is None]


def end_of(reader: RunReader) -> str | None:
    """Return why a run ended for good, None where it goes on or the same command goes on."""
    reason = _end(reader).get("reason")
    return str(reason) if is_ended(reason) else None


def _end(reader: RunReader) -> Mapping[str, Any]:
    """Return the note of a run's end; an empty one where it has gone on since, or never ended."""
    last = reader.events_of(("setup", "stopped"), without=("$.info",))[-1:]
    return last[0].payload if last and last[0].kind == "stopped" else {}


def never_judged(reason: str) -> str:
    """Return what is to be said of attempts that a run left without a verdict when it ended."""
    if reason == StopReason.CLOSED:
        return "never judged: the search was closed; the same command without --close goes on"
    if reason == StopReason.EXHAUSTED:
        # Whatever else is there to try is tried: only a recording leaves what it cannot answer.
        return (
            "never judged: the search ended (exhausted): the recording holds no answer to what was "
            "asked; replay it with the options that it was made with"
        )
    more = LARGER.get(reason, "budget")
    return f"never judged: the search ended ({reason}); a larger {more} goes on with them"


def _last_stop(reader: RunReader) -> Mapping[str, Any]:
    stops = reader.notes("stopped")
    return stops[-1] if stops else {}


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


def _best(reader: RunReader) -> tuple[Attempt | None, Verdict | None]:
    finals = {
        str(note["candidate_id"]): from_json(Verdict, note["verdict"])
        for note in reader.notes("final")
    }
    best = best_attempt(reader.attempts(), finals)
    return best, finals.get(best.candidate_id or "") if best is not None else None
