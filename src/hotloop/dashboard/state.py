"""A run as the pages need it, folded from its journal and brought up to date by what is new.

Attempts are held without the bulk of their verdicts (cases, resources, details): a run of 1,000
attempts is read in a fraction of a second. A page about one attempt reads that one whole
(`attempt_record.py`).
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from hotloop.core.attempt import Asked, Attempt, RunSpec
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Store
from hotloop.core.record import from_json
from hotloop.core.verdict import Evidence, Performance, Stage, Status, Tier, Verdict
from hotloop.engine.costs import CallCosts
from hotloop.engine.result import best_attempt
from hotloop.report.endings import is_ended
from hotloop.store.lock import LOCK_FILE, last_words
from hotloop.store.reader import RunReader
from hotloop.store.rows import StoredEvent

KINDS = (
    "begun", "continued", "setup", "proposed", "concluded", "final", "call_cost", "warning",
    "stopped",
)  # fmt: skip
"""Events that the pages show; prompts and replies are read where they are shown."""
_BULK = (
    "$.attempt.declared", "$.attempt.notes", "$.attempt.verdict.correctness",
    "$.attempt.verdict.resources", "$.attempt.verdict.environment",
    "$.attempt.verdict.evidence.details",
)  # fmt: skip
"""What makes records long and is shown on the page of one attempt only."""
SILENT_S = 180.0
"""A run on another host that wrote nothing for so long is called silent."""
LEAST_WARNINGS = 5


class Activity(StrEnum):
    """Whether anything goes on in a run."""

    RUNNING = "running"
    ENDED = "ended"
    WAITING = "waiting"
    """For answers from outside."""
    FAILED = "failed"
    GONE = "ended without a word"
    """Its process is gone and said nothing: killed, or the machine went down."""
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a run has spent. Unknown is None, never 0."""

    time_s: float
    candidates: int
    """Attempts that have a verdict."""
    calls: int
    tokens: float | None
    usd: float | None
    by_attempt: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """The last note on what an attempt's calls cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """One run at one moment."""

    folder: Path
    last_seq: int
    first_at: float
    """When it began and when it last wrote, seconds since the epoch."""
    last_at: float
    spec: RunSpec
    problem: Problem
    info: ProblemInfo | None
    setup_s: float
    attempts: tuple[Attempt, ...]
    """In order of id, without cases, resources and details."""
    finals: Mapping[str, Verdict]
    """Final verdicts by candidate, whole."""
    best: Attempt | None
    stop: Mapping[str, Any] | None
    """The note of its end; None while nothing ended it."""
    warnings: tuple[str, ...]
    """The last few."""
    spending: Spending

    @property
    def device(self) -> str:
        """`cuda` or `cpu`, as judged."""
        return self.spec.device if self.info is None else self.info.device

    @property
    def is_timed(self) -> bool:
        """Whether times mean anything: not on a CPU."""
        return self.device != "cpu"

    @property
    def has_ended(self) -> bool:
        """Whether it ended for good: what has no verdict gets none."""
        return self.stop is not None and is_ended(self.stop.get("reason"))

    @property
    def final(self) -> Verdict | None:
        """The final verdict of the best attempt."""
        return None if self.best is None else self.finals.get(self.best.candidate_id or "")


def read_state(folder: Path, former: RunState | None = None) -> RunState:
    """Return the state of a run; with a former one, only what is new is read.

    Raises:
        ForeignRun: there is no run, or a newer hotloop wrote it.
        StoreError: it cannot be read.
        ValueError: its records have another shape.
    """
    with RunReader(folder) as reader:
        last = reader.last_event()
        if former is not None and last.seq < former.last_seq:
            former = None  # another run lies in the folder now
        after = 0 if former is None else former.last_seq
        # What comes in meanwhile is read next time: nothing is taken twice.
        found = reader.events_of(KINDS, after=after, without=_BULK)
        events = [event for event in found if event.seq <= last.seq]
        notes = _by_kind(events)
        attempts = _attempts(events, former)
        finals = {} if former is None else dict(former.finals)
        for note in notes.get("final", ()):
            verdict = from_json(Verdict, note["verdict"])
            if verdict.tier is Tier.FINAL:
                finals[str(note["candidate_id"])] = verdict
        setups = notes.get("setup", ())
        info = None if former is None else former.info
        if setups:
            info = from_json(ProblemInfo, setups[-1]["info"])
        warnings = () if former is None else former.warnings
        warnings += tuple(str(note["message"]) for note in notes.get("warning", ()))
        return RunState(
            folder=folder,
            last_seq=last.seq,
            first_at=reader.first_written_at(),
            last_at=last.written_at,
            spec=reader.spec(),
            problem=reader.problem(),
            info=info,
            setup_s=sum((float(n["setup_s"]) for n in setups), former.setup_s if former else 0.0),
            attempts=attempts,
            finals=finals,
            best=best_attempt(attempts, finals),
            stop=_stop(events, None if former is None else former.stop),
            warnings=warnings[-LEAST_WARNINGS:],
            spending=_spending(reader, notes, attempts, former),
        )


def _by_kind(events: Sequence[StoredEvent]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        found.setdefault(event.kind, []).append(event.payload)
    return found


def _attempts(events: Sequence[StoredEvent], former: RunState | None) -> tuple[Attempt, ...]:
    found = {} if former is None else {a.id: a for a in former.attempts}
    raw = {
        int(e.payload["attempt"]["id"]): e.payload["attempt"]
        for e in events
        if e.kind in ("proposed", "concluded")
    }
    found |= {attempt_id: light_attempt(record) for attempt_id, record in raw.items()}
    return tuple(found[attempt_id] for attempt_id in sorted(found))


def light_attempt(record: Mapping[str, Any]) -> Attempt:
    """Return an attempt without the bulk of its verdict and without what it declares."""
    verdict, asked = record["verdict"], record.get("asked")
    return Attempt(
        id=int(record["id"]),
        action=str(record["action"]),
        point=dict(record["point"]),
        parents=tuple(int(n) for n in record["parents"]),
        generator=str(record["generator"]),
        candidate_id=record["candidate_id"],
        verdict=None if verdict is None else _light_verdict(verdict),
        objective=record["objective"],
        started_s=float(record["started_s"]),
        finished_s=record["finished_s"],
        asked=None if asked is None else Asked(**asked),
    )


def _light_verdict(record: Mapping[str, Any]) -> Verdict:
    evidence, performance = record["evidence"], record["performance"]
    if evidence is not None:
        evidence = Evidence(kind=str(evidence["kind"]), message=str(evidence["message"]))
    return Verdict(
        status=Status(record["status"]),
        stage=Stage(record["stage"]),
        message=str(record["message"]),
        candidate_id=str(record["candidate_id"]),
        problem_id=str(record["problem_id"]),
        tier=Tier(record["tier"]),
        device=str(record["device"]),
        evidence=evidence,
        isolation=str(record["isolation"]),
        performance=None if performance is None else _performance(performance),
    )


def _performance(record: Mapping[str, Any]) -> Performance:
    # Built directly: checking every field of 1,000 of them is half of a page's time.
    intervals = {name: tuple(ends) for name, ends in record["speedup_ci"].items()}
    latency_ms = float(record["latency_ms"])
    return Performance(**{**record, "latency_ms": latency_ms, "speedup_ci": intervals})


def _stop(
    events: Sequence[StoredEvent], former: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Return the note of the end; None where something went on after it."""
    stop = former
    for event in events:
        if event.kind == "stopped":
            stop = event.payload
        elif event.kind in ("begun", "continued", "setup", "proposed", "concluded"):
            stop = None
    return stop


def _spending(
    reader: RunReader,
    notes: Mapping[str, Sequence[Mapping[str, Any]]],
    attempts: Sequence[Attempt],
    former: RunState | None,
) -> Spending:
    costs = CallCosts(cast("Store", reader))  # it reads and no more
    by_attempt = {} if former is None else dict(former.spending.by_attempt)
    by_attempt |= {int(note["attempt"]): note for note in notes.get("call_cost", ())}
    return Spending(
        time_s=reader.spent_s(),
        candidates=sum(attempt.verdict is not None for attempt in attempts),
        calls=costs.calls,
        tokens=costs.tokens().exact,
        usd=costs.usd().exact,
        by_attempt=by_attempt,
    )


def activity(state: RunState, now: float | None = None) -> Activity:
    """Return whether anything goes on in a run, without touching its lock."""
    if last_words(state.folder):  # later than all that its journal holds
        return Activity.FAILED
    if state.stop is not None:
        reason = state.stop.get("reason")
        if reason == "waiting":
            return Activity.WAITING
        return Activity.FAILED if reason == "failed" else Activity.ENDED
    alive = writer_lives(state.folder)
    if alive is not None:
        return Activity.RUNNING if alive else Activity.GONE
    age_s = (time.time() if now is None else now) - state.last_at
    return Activity.RUNNING if age_s < SILENT_S else Activity.SILENT


def writer_lives(folder: Path) -> bool | None:
    """Whether the process that held a folder last is there; None where that cannot be seen."""
    try:
        holder = json.loads((folder / LOCK_FILE).read_text(encoding="utf-8"))
        if holder["host"] != socket.gethostname():
            return None
        return os.path.exists(f"/proc/{int(holder['pid'])}") if os.path.isdir("/proc/1") else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
