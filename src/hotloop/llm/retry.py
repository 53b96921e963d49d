"""Ask again: what can pass is retried inside the deadline, what cannot is raised at once.

Decided by the type of the error. A `Retry-After` that does not fit the deadline ends the call
immediately, so that its time is not slept away.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hotloop.errors import BadReply, DeadlinePassed, EndpointDown, ProviderError, RateLimited

T = TypeVar("T")

RETRYABLE = (RateLimited, EndpointDown, BadReply)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and after how long."""

    max_retries: int = 6
    """Of failures that waiting may cure."""
    max_bad_replies: int = 2
    """Of answers that are not the protocol: each of them may have been paid."""
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_asked_wait_s: float = 900.0
    """Of waits that the endpoint asks for; a longer one ends the call, whatever its deadline."""
    jitter_frac: float = 0.25
    """A wait is longer by up to this share, so that parallel calls do not come back together."""


class Deadline:
    """A point in time, seconds from now; None never comes."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining_s(self) -> float | None:
        """Return the seconds left, not below 0; None when there is no end."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def within(self, seconds: float) -> float:
        """Return the smaller one of `seconds` and what is left."""
        left = self.remaining_s()
        return seconds if left is None else min(seconds, left)

    def has_passed(self) -> bool:
        """Whether nothing is left."""
        return self.remaining_s() == 0.0


def with_retries(
    send: Callable[[], T],
    *,
    deadline: Deadline,
    policy: RetryPolicy,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[T, int]:
    """Return what `send` returns and the number of failures before.

    Raises:
        ProviderError: the last failure, when retrying cannot help or the deadline comes first.
    """
    failures = bad_replies = 0
    while True:
        try:
            return send(), failures
        except RETRYABLE as exc:
            failures += 1
            bad_replies += isinstance(exc, BadReply)
            if failures > policy.max_retries or bad_replies > policy.max_bad_replies:
                raise
            wait_s = _wait_s(exc, failures, policy)
            left_s = deadline.within(policy.longest_asked_wait_s)
            if wait_s >= left_s:
                raise _out_of_time(exc, wait_s, left_s) from None
            sleep(wait_s)


def _wait_s(exc: ProviderError, failures: int, policy: RetryPolicy) -> float:
    asked_s = exc.retry_after_s if isinstance(exc, RateLimited) else None
    wait_s = min(policy.first_wait_s * 2 ** (failures - 1), policy.longest_wait_s)
    jitter = random.uniform(0.0, policy.jitter_frac)
    return (1.0 + jitter) * wait_s if asked_s is None else asked_s + jitter * policy.first_wait_s


def _out_of_time(exc: ProviderError, wait_s: float, left_s: float) -> ProviderError:
    tail = f"; the next try would be in {wait_s:.1f} s, the call may wait {left_s:.1f} s"
    if isinstance(exc, RateLimited):
        return RateLimited(f"{exc}{tail}", retry_after_s=exc.retry_after_s)
    return type(exc)(f"{exc}{tail}") if left_s > 0 else DeadlinePassed(f"{exc}{tail}")
