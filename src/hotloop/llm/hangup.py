"""Read a response line by line, never longer than allowed.

A timeout of the HTTP client restarts with every byte, so a server that drips, or a name that does
not resolve, would hold a call for ever. Here a thread reads and the caller waits with its own
clocks: one for a sign of life (a whole line; comments count), one for the whole call. Whoever gives
up hangs up: the socket is shut down, so that the thread ends and the endpoint stops generating.
(Before the response has begun there is no socket to shut: the thread then ends with the client's
own timeout.)
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any

from hotloop.errors import DeadlinePassed, EndpointDown, ReplyTooLong
from hotloop.llm.cancelling import Token
from hotloop.llm.retry import Deadline

QUEUED_CHUNKS = 64
_POLL_S = 0.05

Opened = Callable[[], AbstractContextManager[Any]]
"""Sends the request; its value has `iter_bytes()` and `http_response`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception on its way from the reading thread to the caller."""

    error: Exception


class Line:
    """One call's connection, read by its own thread."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._chunks: queue.Queue[bytes | Failure | None] = queue.Queue(QUEUED_CHUNKS)
        self._over = threading.Event()
        self._response: Any = None
        self._thread = threading.Thread(target=self._read, name="model-call", daemon=True)

    def __enter__(self) -> Line:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.abandon()

    def abandon(self) -> None:
        """Hang up, and wake whoever waits in `get`. Idempotent."""
        self._over.set()
        if self._thread.is_alive() and self._response is not None:
            hang_up(self._response)
        # A full queue wakes its reader too.
        with suppress(queue.Full):
            self._chunks.put_nowait(None)

    def get(self, timeout_s: float) -> bytes | Failure | None:
        """Return the next bytes, None at the end, or what went wrong.

        Raises:
            queue.Empty: nothing came in that time.
        """
        return self._chunks.get(timeout=timeout_s)

    def _read(self) -> None:
        try:
            with self._opened() as response:
                self._response = response
                if self._over.is_set():
                    return
                for chunk in response.iter_bytes():
                    if not self._put(chunk):
                        return
            self._put(None)
        except Exception as exc:  # noqa: BLE001  handed to the caller's thread, which knows the types
            self._put(Failure(error=exc))

    def _put(self, item: bytes | Failure | None) -> bool:
        while not self._over.is_set():
            with suppress(queue.Full):
                self._chunks.put(item, timeout=_POLL_S)
                return True
        return False


def hang_up(response: Any) -> None:
    """Shut the socket of a response that another thread is reading."""
    stream = response.http_response.extensions.get("network_stream")
    connection = None if stream is None else stream.get_extra_info("socket")
    if connection is not None:
        # Closed at the same moment by its reader: then there is nothing left to shut.
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def read_lines(
    line: Line, token: Token, *, deadline: Deadline, idle_s: float, max_line_bytes: int
) -> Iterator[bytes]:
    """Yield the lines of a response without their ends; the last one may lack its end.

    Raises:
        Cancelled: the call was given up.
        DeadlinePassed: the call's time is over.
        EndpointDown: no whole line came for `idle_s` seconds.
        ReplyTooLong: a line is longer than `max_line_bytes`.
        Exception: whatever the reading thread met.
    """
    pending = bytearray()
    silent_since = time.monotonic()
    while True:
        quiet_s = time.monotonic() - silent_since
        try:
            item = line.get(max(0.0, deadline.within(idle_s - quiet_s)))
        except queue.Empty:
            item = b""
        token.check()
        if deadline.has_passed():
            raise DeadlinePassed(f"no complete answer within the {deadline.seconds:.1f} s it had")
        if item is None:
            break
        if isinstance(item, Failure):
            raise item.error
        pending += item
        if b"\n" in item:
            silent_since = time.monotonic()
            *whole, rest = pending.split(b"\n")
            yield from (bytes(part).rstrip(b"\r") for part in whole)
            pending = rest
        elif time.monotonic() - silent_since >= idle_s:
            raise EndpointDown(f"the endpoint fell silent: nothing whole came for {idle_s:g} s")
        if len(pending) > max_line_bytes:
            raise ReplyTooLong(f"one line of the answer is longer than {max_line_bytes:,} bytes")
    if pending:
        yield bytes(pending).rstrip(b"\r")
