"""Hardware counters of the best candidate so far: when to read them, and of what.

A candidate that passed and is faster than every one before it is worth seconds of a profiler. Its
launches of one forward are recorded, its process is ended, and a process without any code of it
launches them again under ncu. Counters are advice for the next attempt: whatever goes wrong here is
a line of text, never a verdict. A recording is what the candidate says it launches; nothing here
checks that, the final tier's replay does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.memory import leave_room
from hotloop.worker.profile_ncu import Counters, read_counters
from hotloop.worker.replay import Forward, Refused, record_forward, set_offsets
from hotloop.worker.workroom import Workroom

TABLES = "tables"
MAX_FAILURES = 2
"""After as many in a row nobody tries again: each costs up to a deadline."""


class Profiler:
    """Knows the best time of a session and reads counters of what beats it."""

    def __init__(self, room: Workroom, *, incumbent_ms: float | None = None) -> None:
        """Start with a best time that is known already, or with none."""
        self._room = room
        self._incumbent_ms = incumbent_ms
        self._failures = 0
        self._hopeless: str | None = None

    def set_best(self, latency_ms: float) -> None:
        """Take another best time than that of the session: the next candidate is of another run."""
        self._incumbent_ms = latency_ms

    def is_best(self, latency_ms: float) -> bool:
        """Note the time of a candidate that passed; return whether it is the best so far."""
        if self._incumbent_ms is not None and latency_ms >= self._incumbent_ms:
            return False
        self._incumbent_ms = latency_ms
        return True

    def counters(self, evaluation: Evaluation, expected_kernels: tuple[str, ...]) -> Counters:
        """Return the counters of a timed candidate, whose process this ends, or why there are none.

        Args:
            evaluation: loaded, correct and timed; it has answered its last request after this.
            expected_kernels: names of the device activities of one call.
        """
        if self._hopeless is not None:
            return Counters(refused=self._hopeless)
        try:
            found = self._read(evaluation, expected_kernels)
        except (Refused, Failed) as exc:  # of this candidate: the next may do better
            return Counters(refused=f"its launches cannot be recorded: {str(exc)[:200]}")
        except Exception as exc:  # noqa: BLE001  advice must not cost the verdict that is there
            found = Counters(refused=f"the profiler failed: {type(exc).__name__}: {str(exc)[:150]}")
        self._remember(found)
        return found

    def _read(self, evaluation: Evaluation, expected_kernels: tuple[str, ...]) -> Counters:
        forward = record_forward(evaluation, expected_kernels)
        evaluation.close()  # nothing of the candidate runs beside what is watched
        leave_room()
        folder = self._room.folder("profile")
        try:
            try:
                message = _message(evaluation, forward, folder)
            except OSError as exc:  # what it sent as tables
                raise Refused(f"its tables cannot be copied: {exc}") from None
            return read_counters(message, folder, self._room.environment(folder))
        finally:
            forward.close()
            self._room.discard(folder)

    def _remember(self, found: Counters) -> None:
        if found.refused is not None:
            print(f"hotloop judge: no counters: {found.refused}", file=sys.stderr, flush=True)
        self._failures = 0 if found.refused is None else self._failures + 1
        if found.refused is not None and (found.for_good or self._failures >= MAX_FAILURES):
            self._hopeless = found.refused


def _message(evaluation: Evaluation, forward: Forward, folder: Path) -> dict[str, Any]:
    """Return what `profile_host.py` wants: the launches and where their data lie.

    Tables are copied into the judge's folder: a descriptor would have to pass through the profiler.
    """
    board = evaluation.board
    beside = {}
    if forward.tables is not None:
        forward.tables.copy_to(folder / TABLES)
        beside = {"tables": str(folder / TABLES)}
    starts = set_offsets(board)
    return {
        "handle": board.arena.token["handle"],
        "set_offset": starts[0],
        "used_bytes": starts[1] if len(starts) > 1 else board.layout.size_bytes,
        **beside,
        **forward.message,
    }
