"""Messages between the coordinator and a judge: one JSON object a line-free frame.

A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON. The same frames travel over
pipes to a local judge and over ssh to a remote one. Requests carry an `id`; answers repeat it.
Blobs never travel here: a candidate is text.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

PROTOCOL_VERSION = 2
MAX_FRAME_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the coordinator asks of a judge.

    Methods: `hello`, `load` (problem, options), `audit` (problem), `build` (candidate), `verify`
    (candidate, tier, short), `shutdown`.
    """

    id: int
    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A judge's answer: a result, or the error's class name and message."""

    id: int
    result: Any = None
    error: str | None = None
    """Name of a class in `hotloop.errors`."""
    message: str | None = None


def write_frame(stream: IO[bytes], payload: Mapping[str, Any]) -> None:
    """Write one frame and flush.

    Raises:
        ValueError: the frame is over `MAX_FRAME_BYTES`.
    """
    body = json.dumps(payload, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise ValueError(f"a frame may hold {MAX_FRAME_BYTES} bytes, got {len(body)}")
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


def read_frame(stream: IO[bytes]) -> dict[str, Any] | None:
    """Read one frame; None at a clean end of the stream.

    Raises:
        ValueError: the stream ended inside a frame, or it is too large or no JSON object.
    """
    head = _read_exactly(stream, 4)
    if not head:
        return None
    (size,) = struct.unpack(">I", head)
    if size > MAX_FRAME_BYTES:
        raise ValueError(f"a frame may hold {MAX_FRAME_BYTES} bytes, got {size}")
    body = _read_exactly(stream, size)
    if len(head) < 4 or len(body) < size:
        raise ValueError("the stream ended inside a frame")
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")
    return value


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    chunks: list[bytes] = []
    missing = size
    while missing:
        chunk = stream.read(missing)
        if not chunk:
            break
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)
