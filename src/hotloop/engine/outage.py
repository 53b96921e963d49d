"""Outage: an endpoint that answered before and is down now, and when it is asked again.

What was never reached is a wrong address, and ends the run. What answered in this session is taken
to come back, be it after hours: each wait is twice as long as the one before it, and is told.
"""

from __future__ import annotations

import time

from hotloop.errors import EndpointDown, ProviderError

FIRST_WAIT_S = 30.0
LONGEST_WAIT_S = 900.0


class Outage:
    """Counts tries and waits, in real seconds."""

    def __init__(self, first_wait_s: float = FIRST_WAIT_S) -> None:
        """Begin with an endpoint that has not answered yet."""
        self._first_wait_s = first_wait_s
        self._has_answered = False
        self._tries = 0
        self._until_s = 0.0

    @property
    def is_on(self) -> bool:
        """Whether nobody is to be asked for now."""
        return time.monotonic() < self._until_s

    def answered(self) -> None:
        """The endpoint has answered."""
        self._has_answered = True
        self._tries = 0

    def may_pass(self, error: BaseException | None) -> bool:
        """Whether an error is an outage that is waited out.

        Answers that came and were of no use, several in a row, are none: more would cost money.
        """
        is_down = isinstance(error, EndpointDown) and not isinstance(error.__cause__, ProviderError)
        return is_down and self._has_answered

    def begin(self) -> float | None:
        """Begin to wait; return the seconds, or None when a wait is under way."""
        if self.is_on:
            return None
        wait_s = min(self._first_wait_s * 2.0**self._tries, LONGEST_WAIT_S)
        self._tries += 1
        self._until_s = time.monotonic() + wait_s
        return wait_s
