"""Each call as an intent and a response, durable before anybody reads the answer.

A wrapper around any model. A finished call comes from the journal and is never paid twice. A call
that was sent and neither answered nor failed (the process died) is sent once more, and its reply is
marked: the first sending may have been paid too. So is the reply of a call that was cut before.
"""

from __future__ import annotations

from dataclasses import replace

from hotloop.core.model import CallJournal, CallKey, Model, Prompt, Reply
from hotloop.errors import Cancelled, DeadlinePassed, HotloopError, SentTwice

MAX_SENDINGS = 2
CUT = (Cancelled, DeadlinePassed)
"""Failures on this side only: the endpoint may have gone on, and charged for it."""


class JournaledModel:
    """Asks a model through a journal."""

    def __init__(self, inner: Model, journal: CallJournal) -> None:
        self._inner = inner
        self._journal = journal
        self.name = inner.name
        self.paid = inner.paid

    def __repr__(self) -> str:
        return f"JournaledModel({self._inner!r})"

    def cancel(self, key: CallKey) -> None:
        """Give up a call; it is recorded as failed."""
        self._inner.cancel(key)

    def close(self) -> None:
        """Give up every call and end connections. Idempotent."""
        self._inner.close()

    def complete(self, prompt: Prompt, *, key: CallKey, deadline_s: float | None) -> Reply:
        """Return the journal's reply, or ask and record.

        Raises:
            ProviderError: the call failed; recorded.
            SentTwice: it was sent twice without an answer.
            Pending: it awaits an answer from outside; recorded, and asked again next time.
        """
        state = self._journal.state(key, prompt.id)
        if state.reply is not None:
            return state.reply
        uncertain = self.paid and state.sent > 0
        if uncertain and state.sent >= MAX_SENDINGS:
            raise SentTwice(
                f"{self.name}: call {key.text} was sent {state.sent} times without an answer, "
                "and each may have been paid; it is not sent again"
            )
        self._journal.intend(key, prompt)
        try:
            reply = self._inner.complete(prompt, key=key, deadline_s=deadline_s)
        except HotloopError as exc:
            self._journal.fail(key, prompt.id, exc)
            if self.paid and not uncertain and isinstance(exc, CUT):
                # The failure has settled the sending, but it may have been paid: count it again.
                # Once is enough for the mark; who cuts a call on purpose may cut it again.
                self._journal.intend(key, prompt)
            raise
        if uncertain:
            reply = replace(reply, uncertain=True)
        self._journal.respond(key, prompt.id, reply)
        return reply
