"""What a caged process prints: taken in without blocking, bounded in memory, made harmless.

Output is data. A candidate can print without end, print what looks like a verdict, and print codes
that write to the reader's clipboard; nothing here interprets it.
"""

from __future__ import annotations

import os
import re

from hotloop.core.units import KIB, MIB

_READ_BYTES = 64 * KIB
_READS_PER_DRAIN = 64

_CONTROL_STRING = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\n\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"
)
"""OSC, DCS, SOS, PM, APC with their payload, up to BEL or ST (ECMA-48, section 5.6)."""
_CONTROL_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
_ESCAPE_PAIR = re.compile(r"\x1b[ -/]*[0-~]")
_STRAY = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tab and line feed, and those that reverse the reading direction."""


def sanitise(text: str) -> str:
    """Remove terminal control codes and text-direction marks; keep tabs and line feeds.

    A carriage return becomes a line feed, so that a line cannot overwrite the one before it.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROL_STRING.sub("", text)
    text = _CONTROL_SEQUENCE.sub("", text)
    text = _ESCAPE_PAIR.sub("", text)
    return _STRAY.sub("", text)


class OutputCollector:
    """Reads a pipe and keeps its first and last bytes.

    Use it from a poll loop: call `drain` when `fileno()` is readable. Do not wait for the end of
    the pipe to learn that a process has ended: a grandchild may hold it open.
    """

    def __init__(
        self,
        fd: int,
        *,
        head_bytes: int = 64 * KIB,
        tail_bytes: int = 64 * KIB,
        limit_bytes: int = 64 * MIB,
    ) -> None:
        """Take over the reading end of a pipe and make it non-blocking."""
        os.set_blocking(fd, False)
        self._fd = fd
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._limit_bytes = limit_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self.total_bytes = 0
        self.at_end = False

    def fileno(self) -> int:
        """Return the file descriptor, for poll."""
        return self._fd

    @property
    def over_limit(self) -> bool:
        """Whether more than `limit_bytes` came: the process should be killed."""
        return self.total_bytes > self._limit_bytes

    @property
    def dropped_bytes(self) -> int:
        """How many bytes between head and tail were thrown away."""
        return self.total_bytes - len(self._head) - len(self._tail)

    def drain(self) -> bool:
        """Read what is there, at most 4 MiB, so that a flood cannot hold the caller.

        Returns:
            Whether the writing end is closed.
        """
        for _ in range(_READS_PER_DRAIN):
            if self.at_end:
                break
            try:
                data = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                break
            self.at_end = not data
            self._take(data)
        return self.at_end

    def text(self) -> str:
        """Return head and tail as harmless text, with the number of dropped bytes between them."""
        if self.dropped_bytes == 0:
            return sanitise((self._head + self._tail).decode("utf-8", "replace"))
        head = sanitise(self._head.decode("utf-8", "replace"))
        tail = sanitise(self._tail.decode("utf-8", "replace"))
        return f"{head}\n[... {self.dropped_bytes} bytes dropped ...]\n{tail}"

    def _take(self, data: bytes) -> None:
        self.total_bytes += len(data)
        room = self._head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: max(0, len(self._tail) - self._tail_bytes)]
