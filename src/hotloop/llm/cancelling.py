"""Calls under way, and how they are given up from another thread.

A straggler is cut, a second Ctrl-C stops everything: whoever waits inside a call, for bytes or for
its next try, wakes at once and raises `Cancelled`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotloop.core.model import CallKey
from hotloop.errors import Cancelled


class Token:
    """One call's right to go on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_cancelled = threading.Event()
        self._wake: Callable[[], None] | None = None
        self._mutex = threading.Lock()

    def check(self) -> None:
        """Raise when the call was given up.

        Raises:
            Cancelled: it was.
        """
        if self._is_cancelled.is_set():
            raise Cancelled(f"call {self._name} was given up while it was under way")

    def sleep(self, seconds: float) -> None:
        """Wait, but no longer than the call may go on.

        Raises:
            Cancelled: the call was given up.
        """
        self._is_cancelled.wait(seconds)
        self.check()

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` when the call is given up inside the block."""
        with self._mutex:
            self.check()
            self._wake = wake
        try:
            yield
        finally:
            with self._mutex:
                self._wake = None

    def cancel(self) -> None:
        """Give the call up."""
        with self._mutex:
            self._is_cancelled.set()
            if self._wake is not None:
                self._wake()


class CallsUnderWay:
    """The calls of one model."""

    def __init__(self) -> None:
        self._tokens: dict[CallKey, Token] = {}
        self._is_closed = False
        self._mutex = threading.Lock()

    @contextmanager
    def call(self, key: CallKey) -> Iterator[Token]:
        """Register a call for the time of the block.

        Raises:
            Cancelled: the model was closed.
        """
        token = Token(key.text)
        with self._mutex:
            if self._is_closed:
                raise Cancelled(f"call {key.text} came after its model was closed")
            self._tokens[key] = token
        try:
            yield token
        finally:
            with self._mutex:
                self._tokens.pop(key, None)

    def cancel(self, key: CallKey) -> None:
        """Give up the call of this key, if it is under way."""
        with self._mutex:
            token = self._tokens.get(key)
        if token is not None:
            token.cancel()

    def close(self) -> None:
        """Give up every call, and refuse those that come later."""
        with self._mutex:
            self._is_closed = True
            tokens = list(self._tokens.values())
        for token in tokens:
            token.cancel()
