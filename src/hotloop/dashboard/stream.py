"""Server-sent events: tells a page that what it shows has changed.

An event holds no data: the page asks for itself again. The journal's files are looked at, not
opened, so a page that is left open costs next to nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

POLL_S = 0.5
BEAT_S = 15.0
"""A comment after so long without news, so that a closed tab is noticed."""
MOST = 64
"""Pages that are told at the same time."""
RETRY_MS = 2_000
"""When a browser comes back after the server was away."""

Stand = Callable[[], str]
"""Returns text that changes when the page may have changed; it may block for milliseconds."""


class Streams:
    """The open streams of one server."""

    def __init__(self, most: int = MOST) -> None:
        """Begin with none; no more than `most` are open at a time."""
        self._most = most
        self._open = 0
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Let all streams end: the server stops."""
        self._ending.set()

    def answer(self, request: Request, stand: Stand) -> Response:
        """Return a stream of `changed` events, or a refusal when there are too many."""
        if self._open >= self._most:
            return PlainTextResponse("too many pages are open\n", status_code=503)
        return StreamingResponse(
            self._events(request, stand),
            media_type="text/event-stream",
            headers={"X-Accel-Buffering": "no", "Cache-Control": "no-store"},
        )

    async def _events(self, request: Request, stand: Stand) -> AsyncIterator[str]:
        self._open += 1
        try:
            # What the page was made from; news since then are told at once.
            known = request.headers.get("last-event-id") or request.query_params.get("seen", "")
            yield f"retry: {RETRY_MS}\n\n"
            silent_s = 0.0
            while not self._ending.is_set() and not await request.is_disconnected():
                now = mark(await asyncio.to_thread(stand))
                if now != known:
                    known, silent_s = now, 0.0
                    yield f"id: {now}\nevent: changed\ndata: {now}\n\n"
                elif silent_s >= BEAT_S:
                    silent_s = 0.0
                    yield ": still here\n\n"
                await self._pause()
                silent_s += POLL_S
        finally:
            self._open -= 1

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._ending.wait(), POLL_S)
        except TimeoutError:
            return


def mark(text: str) -> str:
    """Return a few hex digits that stand for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
