"""One command's connection, from the server's side: it hears that we are there until it closes."""

from __future__ import annotations

import socket
import threading
from typing import Any

from hotloop.errors import WorkerDied
from hotloop.warm import wire

BEAT_S = 1.0
"""Seconds between two signs of life; a client waits `client.SILENT_S` for one."""
PATIENCE_S = 30.0
"""A client that connects and says nothing for so long is hung up on."""


class Line:
    """A connection on which a sign of life is sent every second until it is closed."""

    def __init__(self, connection: socket.socket) -> None:
        """Take over an open connection."""
        connection.settimeout(PATIENCE_S)
        self._connection = connection
        self._sending = threading.Lock()
        self._closed = threading.Event()
        self._beats = threading.Thread(target=self._beat, name="warm-beat", daemon=True)

    def __enter__(self) -> Line:
        self._beats.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._closed.set()
        with self._sending:  # else a beat could go to whoever gets the descriptor next
            self._connection.close()

    @property
    def is_gone(self) -> bool:
        """Whether who asked has gone."""
        return self._closed.is_set()

    def receive(self) -> Any:
        """Return what is asked.

        Raises:
            WorkerDied: the client is gone, or said nothing that a command of ours says.
        """
        try:
            return wire.receive(self._connection)
        except TimeoutError as exc:
            raise WorkerDied("the client said nothing") from exc

    def send(self, record: dict[str, Any]) -> bool:
        """Send one object; return whether anybody is there to take it."""
        try:
            with self._sending:
                wire.send(self._connection, record)
        except OSError:
            self._closed.set()
        return not self.is_gone

    def _beat(self) -> None:
        while self.send({wire.ALIVE: True}):
            if self._closed.wait(BEAT_S):
                return
