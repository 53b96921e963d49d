"""Reporter: tells the journal and the listener the same story, journal first.

What a listener hears has happened for good: it is on disk by then.
"""

from __future__ import annotations

from typing import Any

from hotloop.core import kill_points
from hotloop.core.attempt import Attempt, Budget
from hotloop.core.candidate import Candidate
from hotloop.core.event import Event, Listener
from hotloop.core.finals import FINAL_NOTE
from hotloop.core.problem import ProblemInfo
from hotloop.core.protocols import Store
from hotloop.core.record import to_json
from hotloop.core.verdict import Verdict


class Reporter:
    """Writes each happening to the store, then passes it on."""

    def __init__(self, store: Store, listen: Listener) -> None:
        self._store = store
        self._listen = listen

    def tell(self, kind: str, **payload: Any) -> None:
        """Pass on something that the journal does not keep."""
        self._listen(Event(kind=kind, payload=payload))

    def setup(self, info: ProblemInfo, setup_s: float) -> None:
        """The problem was loaded."""
        self._store.note("setup", {"info": to_json(info), "setup_s": setup_s})
        self.tell("setup", info=info)

    def asking(self, attempt: Attempt, *, is_new: bool) -> None:
        """A model is asked for an attempt; `is_new` unless an earlier session proposed it."""
        if is_new:
            self._store.propose(attempt, None)
        self.tell("asking", attempt=attempt, is_new=is_new)

    def started(self, attempt: Attempt, candidate: Candidate | None) -> None:
        """An attempt was proposed and written; without a candidate there is no code in it."""
        kill_points.reach("before-propose")
        self._store.propose(attempt, candidate)
        kill_points.reach("after-propose")
        self.tell("started", attempt=attempt)

    def finished(self, attempt: Attempt) -> None:
        """An attempt has its verdict."""
        kill_points.reach("before-verdict")
        self._store.conclude(attempt)
        kill_points.reach("after-verdict")
        self.tell("finished", attempt=attempt)

    def final(self, attempt: Attempt, verdict: Verdict) -> None:
        """An attempt has its final verdict."""
        note = {
            "attempt_id": attempt.id,
            "candidate_id": attempt.candidate_id,
            "verdict": to_json(verdict),
            "concluded": sum(a.verdict is not None for a in self._store.attempts()),
        }
        kill_points.reach("before-final")
        self._store.note(FINAL_NOTE, note)
        kill_points.reach("after-final")
        self.tell("final", verdict=verdict, attempt=attempt)

    def warning(self, message: str) -> None:
        """Something went wrong that the run survives."""
        self._store.note("warning", {"message": message})
        self.tell("warning", message=message)

    def stopped(
        self,
        reason: str,
        budget: Budget,
        *,
        message: str | None = None,
        waiting: tuple[str, ...] = (),
    ) -> None:
        """The session ended; `message` says what the reason does not.

        `waiting` are the files that only somebody outside can answer.
        """
        if waiting:
            self.tell("waiting", waiting=waiting)
        note = {
            "reason": reason,
            "budget": to_json(budget),
            "message": message,
            "waiting": list(waiting),
        }
        kill_points.reach("before-stopped")
        self._store.note("stopped", note)
        kill_points.reach("after-stopped")
        self.tell("stopped", reason=reason, message=message, waiting=waiting)
