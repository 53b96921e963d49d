"""MemoryStore: the journal's contract without a disk, for tests and throw-away runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.core.attempt import Attempt, RunSpec
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.core.record import to_json
from hotloop.core.verdict import Verdict
from hotloop.errors import StoreError
from hotloop.store.identity import check_note_kind, check_same_run
from hotloop.store.memory_leases import MemoryLeases


class MemoryStore:
    """Keeps one run while the process lives."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._spec: RunSpec | None = None
        self._attempts: dict[int, Attempt] = {}
        self._candidates: dict[str, Candidate] = {}
        self._notes: list[tuple[str, Mapping[str, Any]]] = []
        self._spent_s = 0.0
        self.leases = MemoryLeases(self._verdict_of)
        """Verifications that are or were under way: a `core.lease.LeaseBook`."""

    def begin(self, spec: RunSpec, problem: Problem) -> None:
        """Create the run, or check that it is this one.

        Raises:
            ForeignRun: the store holds another run.
        """
        with self._mutex:
            if self._spec is not None:
                check_same_run(self._spec, spec, "this store")
            self._spec = spec

    def propose(self, attempt: Attempt, candidate: Candidate | None) -> None:
        """Record an attempt that awaits its verdict.

        Raises:
            ValueError: the candidate is not the attempt's, or the attempt has its verdict.
        """
        given = None if candidate is None else candidate.id
        if given != attempt.candidate_id or attempt.verdict is not None:
            raise ValueError(f"attempt {attempt.id}: expected its candidate and no verdict")
        with self._mutex:
            known = self._attempts.get(attempt.id)
            if known is not None and known.verdict is not None:
                raise ValueError(f"attempt {attempt.id} has its verdict already")
            if candidate is not None:
                self._candidates[candidate.id] = candidate
            self._attempts[attempt.id] = attempt

    def conclude(self, attempt: Attempt) -> None:
        """Record an attempt's verdict.

        Raises:
            ValueError: there is no verdict, or the attempt is not open.
        """
        with self._mutex:
            known = self._attempts.get(attempt.id)
            if attempt.verdict is None or known is None or known.verdict is not None:
                raise ValueError(f"attempt {attempt.id}: expected a verdict for an open attempt")
            self._attempts[attempt.id] = attempt

    def note(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Append one event that is no attempt.

        Raises:
            ValueError: the kind is one of the journal's own, or the payload has no JSON form.
        """
        check_note_kind(kind)
        with self._mutex:
            self._notes.append((kind, to_json(payload)))
        if kind == "stopped" and payload.get("reason") == "failed":
            self.leases.forgive()

    def notes(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """Return the payloads of all notes of one kind, oldest first."""
        with self._mutex:
            return [payload for noted, payload in self._notes if noted == kind]

    def attempts(self) -> Sequence[Attempt]:
        """Return all attempts in order of id."""
        with self._mutex:
            return [self._attempts[key] for key in sorted(self._attempts)]

    def candidate(self, candidate_id: str) -> Candidate:
        """Return a stored candidate.

        Raises:
            StoreError: it is unknown.
        """
        with self._mutex:
            if candidate_id not in self._candidates:
                raise StoreError(f"no candidate {candidate_id} in this run")
            return self._candidates[candidate_id]

    def spend(self, seconds: float) -> None:
        """Add to the run's spent wall clock.

        Raises:
            ValueError: the seconds are negative.
        """
        if seconds < 0:
            raise ValueError(f"expected seconds from 0, got {seconds!r}")
        with self._mutex:
            self._spent_s += seconds

    def spent_s(self) -> float:
        """Return the wall clock that all sessions of this run have spent."""
        with self._mutex:
            return self._spent_s

    def _verdict_of(self, candidate_id: str) -> Verdict | None:
        with self._mutex:
            attempts = [a for a in self._attempts.values() if a.candidate_id == candidate_id]
        return next((a.verdict for a in attempts if a.verdict is not None), None)
