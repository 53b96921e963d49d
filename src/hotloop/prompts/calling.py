"""One call of a model, its failure sorted: what ends a run, and what only costs one attempt.

Decided by the type of the error alone. A key, a model or an endpoint that does not work stops every
call, so it is raised. A call that was cut, blocked or answered with rubbish is an attempt without
code; several of those in a row mean that no call works, and are raised too.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from hotloop.core.attempt import Spent
from hotloop.core.model import CallKey, Model, Prompt, Reply, add_known
from hotloop.errors import (
    AuthError,
    Cancelled,
    ContextOverflow,
    DeadlinePassed,
    EndpointDown,
    NotRecorded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    UnknownModel,
)

ENDS_THE_RUN = (
    AuthError, UnknownModel, QuotaExhausted, EndpointDown, RequestRejected, NotRecorded,
)  # fmt: skip
"""No other call would fare better. `NotRecorded` is how a recording ends: nothing is wrong then."""
OUT_OF_TIME = (Cancelled, DeadlinePassed)
"""Says nothing about the model: a budget that ends cuts many calls at once."""
UNPAID = (RateLimited, ContextOverflow)
"""Turned away before anything was generated."""
MAX_FAILURES_IN_A_ROW = 5
CUT = "the call took too long and was cut"


class Until:
    """A point in time, seconds from now; None never comes."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining_s(self) -> float | None:
        """Return the seconds left, not below 0; None when there is no end."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one call."""

    reply: Reply | None = None
    failure: str = ""
    """Why there is no reply."""
    was_cut: bool = False
    """Its caller gave it up."""
    spent: Spent = Spent()


class Caller:
    """Calls a model and counts failures. Safe to use from several threads."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._failures = 0
        self._mutex = threading.Lock()

    def call(self, prompt: Prompt, key: CallKey, deadline_s: float | None) -> Answer:
        """Return the reply, or why this call has none.

        Raises:
            Pending: the answer comes from outside and nobody waits for it.
            ProviderError: no call can be made (`ENDS_THE_RUN`), or several in a row failed.
        """
        began_s = time.monotonic()
        try:
            reply = self.model.complete(prompt, key=key, deadline_s=deadline_s)
        except ENDS_THE_RUN:
            raise
        except ProviderError as exc:
            self._count(exc)
            was_cut = isinstance(exc, Cancelled)
            spent = self._spent_on(exc, time.monotonic() - began_s)
            failure = CUT if was_cut else f"{type(exc).__name__}: {exc}"
            return Answer(failure=failure, was_cut=was_cut, spent=spent)
        with self._mutex:
            self._failures = 0
        return Answer(reply=reply, spent=self._spent(reply))

    def _count(self, exc: ProviderError) -> None:
        if isinstance(exc, OUT_OF_TIME):
            return
        with self._mutex:
            self._failures += 1
            failures = self._failures
        if failures >= MAX_FAILURES_IN_A_ROW:
            raise EndpointDown(
                f"{self.model.name}: {failures} calls in a row failed, the last one with "
                f"{type(exc).__name__}: {exc}; see to it and give the same command again"
            ) from exc

    def _spent(self, reply: Reply) -> Spent:
        usage = reply.usage
        return Spent(
            calls=1,
            tokens=add_known(usage.prompt, usage.completion),
            usd=reply.cost_usd if self.model.paid else 0.0,
            call_s=reply.seconds,
        )

    def _spent_on(self, exc: ProviderError, seconds: float) -> Spent:
        if isinstance(exc, UNPAID):
            return Spent(calls=1, tokens=0, usd=0.0, call_s=seconds)
        return Spent(calls=1, tokens=None, usd=None if self.model.paid else 0.0, call_s=seconds)
