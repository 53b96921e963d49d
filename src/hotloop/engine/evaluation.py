"""Evaluation: one verification under a lease, and whether its judge still answers.

The verifier works in a thread; the loop waits beside it. While a verification takes long, its judge
is asked now and then for a sign of life. A judge that gives none for `MISSED` times is given up and
the lease ends: a result that it sends later still comes in, under an epoch that is over, so that it
is kept and not scored. A pause is counted in signs of life that were missed and not by a clock: a
coordinator that was itself stopped did not wait.
"""

from __future__ import annotations

import threading
from typing import Protocol, runtime_checkable

from hotloop.core import kill_points
from hotloop.core.candidate import Candidate
from hotloop.core.lease import Lease
from hotloop.core.protocols import Store, Verifier
from hotloop.core.verdict import Verdict
from hotloop.errors import WorkerTimeout

HEARTBEAT_S = 10.0
"""Real seconds between two questions. Most verifications are over before the first."""

MISSED = 6
"""So many questions without an answer: a judge that swaps, or that a debugger holds for a moment,
is not given up; one that was stopped or whose machine is gone is, within a minute."""

PARTING_S = 15.0
"""How long a verification that was given up may take to end. The next one is not to meet it."""


@runtime_checkable
class Watched(Protocol):
    """A verifier whose judge can be asked whether it is there, from another thread."""

    def is_alive(self, within_s: float) -> bool:
        """Whether the judge answers within so many seconds, beside its work."""

    def abandon(self) -> None:
        """End the judge, so that a `verify` under way raises; the next call starts another."""


class Evaluation:
    """One `verify` in a thread of its own."""

    def __init__(
        self, store: Store, verifier: Verifier, candidate: Candidate, lease: Lease
    ) -> None:
        self.lease = lease
        self._store = store
        self._verifier = verifier
        self._candidate = candidate
        self._ended = threading.Event()
        self._verdict: Verdict | None = None
        self._error: BaseException | None = None

    def verdict(self, heartbeat_s: float) -> Verdict:
        """Verify, and return the verdict that the journal accepted.

        Raises:
            WorkerTimeout: the judge gave no sign of life for too long; the lease is over.
            BaseException: what `Verifier.verify` or the journal raised.
        """
        threading.Thread(
            target=self._work, name=f"evaluation-{self.lease.epoch}", daemon=True
        ).start()
        if not self._watch(heartbeat_s):
            self._give_up(heartbeat_s)
        if self._error is not None:
            raise self._error
        assert self._verdict is not None, "it ends with a verdict or an error"
        return self._verdict

    def _work(self) -> None:
        try:
            kill_points.reach("before-verify")
            verdict = self._verifier.verify(self._candidate, self.lease.tier)
            kill_points.reach("after-verify")
            if self._store.leases.deliver(self.lease.epoch, verdict):
                self._verdict = verdict
        except BaseException as exc:  # noqa: BLE001  handed over to the thread that waits
            self._error = exc
        finally:
            self._ended.set()

    def _watch(self, heartbeat_s: float) -> bool:
        """Wait for the end; return False when the judge has fallen silent."""
        asked, missed = None, 0
        while not self._ended.wait(heartbeat_s):
            if asked is None or asked.is_answered:
                if asked is not None:
                    missed = 0
                    self._store.leases.renew(self.lease.epoch, ttl_s=MISSED * heartbeat_s)
                asked = _Question(self._verifier, MISSED * heartbeat_s)
            else:
                missed += 1
            if missed >= MISSED:
                return False
        return True

    def _give_up(self, heartbeat_s: float) -> None:
        silent_s = MISSED * heartbeat_s
        why = f"the judge gave no sign of life for {silent_s:.0f} s; it was stopped"
        if not self._store.leases.end_lease(self.lease.epoch, why, is_failure=True):
            self._ended.wait(PARTING_S)  # its result came in at this very moment
            return
        assert isinstance(self._verifier, Watched), "others are not asked"
        self._verifier.abandon()
        self._ended.wait(PARTING_S)
        raise WorkerTimeout(why)


class _Question:
    """Asks a judge whether it is there; `is_answered` once it said so."""

    def __init__(self, verifier: Verifier, within_s: float) -> None:
        self.is_answered = not isinstance(verifier, Watched)
        if isinstance(verifier, Watched):
            threading.Thread(
                target=self._ask, args=(verifier, within_s), name="heartbeat", daemon=True
            ).start()

    def _ask(self, verifier: Watched, within_s: float) -> None:
        self.is_answered = verifier.is_alive(within_s)
