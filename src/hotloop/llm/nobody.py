"""The model of commands that write prompts or verify kernels, and ask nobody."""

from __future__ import annotations

from hotloop.core.model import CallKey, Prompt, Reply
from hotloop.errors import NotRecorded


class Nobody:
    """A model that is never asked."""

    name = "nobody"
    paid = False

    def complete(self, prompt: Prompt, *, key: CallKey, deadline_s: float | None) -> Reply:
        """Refuse.

        Raises:
            NotRecorded: always.
        """
        raise NotRecorded("this command asks no model")

    def cancel(self, key: CallKey) -> None:
        """Do nothing: there are no calls."""

    def close(self) -> None:
        """Do nothing: nothing is open."""
