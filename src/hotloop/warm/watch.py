"""Whether a judge still answers while it verifies; one that does not is given up."""

from __future__ import annotations

import threading
from typing import Protocol, runtime_checkable

from hotloop.errors import WorkerTimeout

ASK_S = 2.0
"""Seconds between two questions; most verifications are over sooner."""
SILENT_S = 15.0
"""A judge that answers no question for so long is stopped or hangs. It answers beside its work."""


class JudgeSilent(WorkerTimeout):
    """A judge is there and does not answer; it was ended, and another may do the work."""


@runtime_checkable
class Watched(Protocol):
    """A verifier whose judge can be asked whether it is there, from another thread."""

    def is_alive(self, within_s: float) -> bool:
        """Whether the judge answers within so many seconds, beside its work."""

    def abandon(self) -> None:
        """End the judge, so that a `verify` under way raises; the next call starts another."""


class Watch:
    """Watches one verifier while the block runs."""

    def __init__(self, verifier: object) -> None:
        """Watch nothing yet; a verifier that cannot be asked is left in peace."""
        self._verifier = verifier
        self._over = threading.Event()
        self.gave_up = False
        """Whether the judge was ended because it did not answer."""

    def __enter__(self) -> Watch:
        if isinstance(self._verifier, Watched):
            threading.Thread(
                target=self._look, args=(self._verifier,), name="warm-watch", daemon=True
            ).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()

    def _look(self, verifier: Watched) -> None:
        while not self._over.wait(ASK_S):
            if not verifier.is_alive(SILENT_S) and not self._over.is_set():
                self.gave_up = True
                verifier.abandon()
                return
