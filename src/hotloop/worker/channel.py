"""Frames and file descriptors over a Unix stream socket, with a deadline on our own waits.

A frame is a 4-byte big-endian length and a JSON object; descriptors ride on the header. Used
between judge and zygote (trusted) and between judge and candidate (untrusted: frames from there are
data, capped in size and refused when malformed).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

MAX_FDS = 8
MAX_FRAME_BYTES = 16 << 20
SEND_S = 30
"""How long `send` waits for an end that takes nothing, where `Channel.pair` made the socket."""


class ChannelClosed(Exception):
    """The other end is gone, or it sent something that is no frame."""


class ChannelTimeout(Exception):
    """Nothing complete arrived within the deadline."""


class FrameTooLarge(Exception):  # noqa: N818  the sender's to handle; the channel goes on
    """A message is larger than the other end takes; nothing was sent."""


class Channel:
    """One end of a framed socket. Not thread-safe.

    It waits whether or not the socket blocks: that is a property of the open file, which every
    process that inherited it may change.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        send_s: float | None = None,
    ) -> None:
        self.sock = sock
        self._max_frame_bytes = max_frame_bytes
        self._send_s = send_s

    @classmethod
    def pair(cls, send_s: int = SEND_S) -> tuple[Channel, socket.socket]:
        """Return our end and the raw socket to hand to another process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", send_s, 0))
        return cls(ours, send_s=send_s), theirs

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message, with open descriptors if any.

        Raises:
            ChannelClosed: the other end is gone, or does not read.
            FrameTooLarge: the message is over the limit; the channel is as it was.
        """
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
        if len(body) > self._max_frame_bytes:
            raise FrameTooLarge(f"a message of {len(body)} bytes; at most {self._max_frame_bytes}")
        head = struct.pack(">I", len(body))
        try:
            self._write(head, fds)
            self._write(body)
        except OSError as exc:
            raise ChannelClosed(f"the other end is gone ({exc})") from exc

    def receive(self, timeout_s: float | None = None) -> tuple[dict[str, Any], list[int]]:
        """Return one message and the descriptors that came with it.

        Raises:
            ChannelTimeout: nothing complete arrived within `timeout_s`.
            ChannelClosed: end of stream, or no valid frame.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        fds: list[int] = []
        try:
            return self._read_message(deadline, fds), fds
        except (ChannelClosed, ChannelTimeout):
            for fd in fds:  # nobody will learn of them
                os.close(fd)
            raise

    def _read_message(self, deadline: float | None, fds: list[int]) -> dict[str, Any]:
        (size,) = struct.unpack(">I", self._read(4, deadline, fds))
        if size > self._max_frame_bytes:
            raise ChannelClosed(f"a frame of {size} bytes; at most {self._max_frame_bytes}")
        body = self._read(size, deadline)
        try:
            message = json.loads(body, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as exc:
            raise ChannelClosed(f"a frame that is no JSON ({type(exc).__name__})") from exc
        if not isinstance(message, dict):
            raise ChannelClosed(f"expected an object, got {type(message).__name__}")
        return message

    def close(self) -> None:
        """Close our end; the other end sees it even while another thread waits here."""
        with contextlib.suppress(OSError):  # it may be closed or disconnected already
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def _write(self, data: bytes, fds: Sequence[int] = ()) -> None:
        left, riders = memoryview(data), list(fds)
        began = time.monotonic()
        while left:
            try:
                sent = (
                    socket.send_fds(self.sock, [left], riders) if riders else self.sock.send(left)
                )
            except BlockingIOError:
                left_s = None if self._send_s is None else began + self._send_s - time.monotonic()
                if not self._is_ready(select.POLLOUT, left_s):
                    raise ChannelClosed(
                        f"the other end took nothing for {self._send_s} s"
                    ) from None
                continue
            left, riders, began = left[sent:], [], time.monotonic()

    def _read(self, size: int, deadline: float | None, fds: list[int] | None = None) -> bytes:
        chunks: list[bytes] = []
        missing = size
        while missing:
            self._wait_readable(deadline)
            try:
                if fds is not None:
                    chunk, got, _, _ = socket.recv_fds(self.sock, missing, MAX_FDS)
                    fds.extend(got)
                else:
                    chunk = self.sock.recv(min(missing, 1 << 20))
            except BlockingIOError:
                if deadline is None:
                    self._is_ready(select.POLLIN, None)
                continue
            except OSError as exc:
                raise ChannelClosed(f"the other end is gone ({exc})") from exc
            if not chunk:
                raise ChannelClosed("the other end closed the channel")
            chunks.append(chunk)
            missing -= len(chunk)
        return b"".join(chunks)

    def _wait_readable(self, deadline: float | None) -> None:
        if deadline is None:
            return
        if not self._is_ready(select.POLLIN, deadline - time.monotonic()):
            raise ChannelTimeout("no answer within the deadline")

    def _is_ready(self, event: int, left_s: float | None) -> bool:
        """Wait for an event, or for the other end to go; return whether it came in time."""
        poller = select.poll()
        poller.register(self.sock, event | select.POLLHUP)
        if left_s is None:
            return bool(poller.poll())
        return left_s > 0 and bool(poller.poll(max(1, int(left_s * 1000))))


def refuse_constant(name: str) -> None:
    """Take no NaN or infinity, which Python's reader knows and JSON does not."""
    raise ValueError(f"{name} is no JSON")
