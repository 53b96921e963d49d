"""What a command and a warm judge say to each other: one JSON object each way, with its length."""

from __future__ import annotations

import json
import os
import socket
import struct
from hashlib import sha256
from pathlib import Path
from typing import Any

from hotloop import errors
from hotloop.errors import HotloopError, InfraError, WorkerDied

ALIVE = "alive"
"""Key of a sign of life."""
SILENT = "silent"
"""Key of the words for a judge that fell silent and was ended."""
MAX_BYTES = 256 << 20
MAX_BASE_BYTES = 48
"""A socket's path has room for 107 bytes (sun_path in unix(7)), and ours adds under 50."""
_LENGTH = struct.Struct("!Q")


def send(connection: socket.socket, record: Any) -> None:
    """Send one JSON object.

    Raises:
        OSError: the other side is gone.
    """
    data = json.dumps(record).encode()
    connection.sendall(_LENGTH.pack(len(data)) + data)


def receive(connection: socket.socket) -> Any:
    """Return the other side's JSON object.

    Raises:
        TimeoutError: it sent nothing for as long as the connection's timeout is.
        WorkerDied: it is gone, or sent something else.
    """
    try:
        (count,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
        if count > MAX_BYTES:
            raise WorkerDied(f"the warm judge sent {count:,} bytes")
        return json.loads(_exactly(connection, count))
    except TimeoutError:
        raise
    except (OSError, ValueError) as exc:
        raise WorkerDied(f"the warm judge is gone ({exc}); give the command again") from exc


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise OSError("it closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def error_record(error: HotloopError) -> dict[str, str]:
    """Return an error as what `raise_error` raises on the other side."""
    return {"error": type(error).__name__, "message": str(error)}


def raise_error(record: dict[str, str]) -> None:
    """Raise the error that the other side told."""
    kind = getattr(errors, record["error"], InfraError)
    known = isinstance(kind, type) and issubclass(kind, HotloopError)
    raise (kind if known else InfraError)(record["message"])


def home() -> Path:
    """Return the folder of the sockets, which nobody else can enter.

    Raises:
        InfraError: it is somebody else's, or cannot be made.
    """
    base = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    if len(os.fsencode(base)) > MAX_BASE_BYTES:
        base = "/tmp"
    folder = Path(base) / f"hotloop-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as exc:
        raise InfraError(f"{folder} cannot be made: {exc.strerror}; set XDG_RUNTIME_DIR") from exc
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or folder.is_symlink():
        raise InfraError(f"{folder} is open to others: remove it, or set XDG_RUNTIME_DIR")
    return folder


def socket_path(*identity: str) -> Path:
    """Return where the judge of that identity listens."""
    digest = sha256("\0".join(identity).encode()).hexdigest()[:16]
    return home() / f"{digest}.sock"
