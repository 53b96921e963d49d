"""Attacks over sockets and shared channels: out of the machine, to daemons, to the next run."""

from __future__ import annotations

import ctypes
import encodings.idna  # noqa: F401  the cage may close the folder that it would come from later
import http.client
import os
import socket
from functools import partial

from hotloop.sandbox import kernel
from hotloop.selftest.case import Case, Target, read, write

_SHMGET, _SHMAT, _IPC_CREAT = 29, 30, 0o1000
_ADD_KEY, _KEYCTL, _SEARCH, _READ_KEY, _SESSION_KEYRING = 248, 250, 10, 11, -3
_VSOCK, _PACKET = 40, 17
_TIMEOUT_S = 0.3

_held: list[socket.socket] = []
"""Sockets stay open until the harness has looked."""


def _open(family: int, kind: int) -> socket.socket:
    sock = socket.socket(family, kind)
    sock.settimeout(_TIMEOUT_S)
    _held.append(sock)
    return sock


def open_sockets(target: Target) -> None:
    """Open sockets of every family, and use TCP and UDP on the machine itself."""
    stream, datagram, raw = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW
    tcp, udp = ("127.0.0.1", target.tcp_port), ("127.0.0.1", target.udp_port)
    target.attempt_all(
        {
            "TCP": lambda: _open(socket.AF_INET, stream).connect(tcp),
            "UDP": lambda: _open(socket.AF_INET, datagram).sendto(b"x", udp),
            "TCP over IPv6": lambda: _open(socket.AF_INET6, stream),
            "UDP over IPv6": lambda: _open(socket.AF_INET6, datagram),
            "netlink": lambda: _open(socket.AF_NETLINK, raw),
            "packet": lambda: _open(_PACKET, raw),
            "vsock": lambda: _open(_VSOCK, stream),
            "raw": lambda: _open(socket.AF_INET, raw),
        }
    )


def reach_daemons(target: Target) -> None:
    """Reach a daemon by the path of its socket, as docker.sock or an ssh agent."""
    daemon, log = f"{target.hidden}/daemon.sock", f"{target.hidden}/log.sock"
    target.attempt_all(
        {
            "connect": lambda: _open(socket.AF_UNIX, socket.SOCK_STREAM).connect(daemon),
            "datagram": lambda: _open(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", log),
            "datagram of a pair": lambda: socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(
                b"x", log
            ),
        }
    )


def reach_daemon_by_path(target: Target) -> None:
    """Connect a stream socket to a path only."""
    daemon = f"{target.hidden}/daemon.sock"
    target.attempt("connect", lambda: _open(socket.AF_UNIX, socket.SOCK_STREAM).connect(daemon))


def reach_harness(target: Target) -> None:
    """Connect to an abstract name of the harness."""
    name = "\0" + target.abstract
    target.attempt("abstract", lambda: _open(socket.AF_UNIX, socket.SOCK_STREAM).connect(name))


def fetch(target: Target) -> None:
    """Fetch a page, as torch.hub and pip would."""

    def get() -> None:
        page = http.client.HTTPConnection("127.0.0.1", target.tcp_port, timeout=_TIMEOUT_S)
        page.request("GET", "/model.bin")

    target.attempt("page", get)


def leave_message(target: Target) -> None:
    """Leave a mark wherever another run may look."""
    mark = target.mark.encode()
    target.attempt_all(
        {
            "shared memory file": lambda: write(f"/dev/shm/hotloop-{target.mark[:8]}", mark),
            "temporary file": lambda: write(f"/tmp/hotloop-{target.mark[:8]}", mark),
            "segment": lambda: ctypes.memmove(_segment(target), mark, len(mark)),
            "key": lambda: _add_key(mark),
        }
    )


def find_message(target: Target) -> None:
    """Look for the mark of the run before."""
    target.attempt_all(
        {
            "shared memory file": lambda: read(f"/dev/shm/hotloop-{target.mark[:8]}"),
            "temporary file": lambda: read(f"/tmp/hotloop-{target.mark[:8]}"),
            "segment": lambda: ctypes.string_at(_segment(target), len(target.mark)),
            "key": _read_key,
            "shared memory files": lambda: "\n".join(os.listdir("/dev/shm")),
        }
    )


def leave_segment(target: Target) -> None:
    """Leave the mark in a shared memory segment and in a key only."""
    mark = target.mark.encode()
    target.attempt("segment", lambda: ctypes.memmove(_segment(target), mark, len(mark)))


def find_segment(target: Target) -> None:
    """Look for the mark in the segment."""
    target.attempt("segment", lambda: ctypes.string_at(_segment(target), len(target.mark)))


def leave_key(target: Target) -> None:
    """Leave the mark in a keyring only."""
    target.attempt("key", lambda: _add_key(target.mark.encode()))


def find_key(target: Target) -> None:
    """Look for the mark in the keyring."""
    target.attempt("key", _read_key)


def _segment(target: Target) -> int:
    """Return the address of the segment whose key both runs can compute."""
    number = kernel.syscall(_SHMGET, int(target.mark[:7], 16), 4096, _IPC_CREAT | 0o666)
    return kernel.syscall(_SHMAT, number, 0, 0) & 0xFFFF_FFFF_FFFF_FFFF


def _add_key(payload: bytes) -> None:
    texts = [kernel.buffer(t) for t in (b"user\0", b"hotloop\0", payload)]
    kind, name, value = (kernel.address_of(t) for t in texts)
    kernel.syscall(_ADD_KEY, kind, name, value, len(payload), _SESSION_KEYRING)


def _read_key() -> bytes:
    texts = [kernel.buffer(t) for t in (b"user\0", b"hotloop\0", bytes(100))]
    kind, name, room = (kernel.address_of(t) for t in texts)
    key = kernel.syscall(_KEYCTL, _SEARCH, _SESSION_KEYRING, kind, name, 0)
    kernel.syscall(_KEYCTL, _READ_KEY, key, room, 100)
    return texts[2].raw


def look_around(target: Target) -> None:
    """List what other processes are, listen on and share: their content stays closed at T1."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            target.attempt("command lines", partial(_sleeper, name))


def _sleeper(pid: str) -> bytes:
    line = read(f"/proc/{pid}/cmdline")
    return line if line.startswith(b"/bin/sleep") else b""


def list_ports(target: Target) -> None:
    """List the ports that are listened on."""
    target.attempt("ports", lambda: read("/proc/net/tcp"))


def list_segments(target: Target) -> None:
    """List the shared memory segments of the machine."""
    target.attempt("segments", lambda: read("/proc/sysvipc/shm"))


CASES = (
    Case(12, "sockets of every family", (open_sockets,)),
    Case(13, "daemons behind Unix sockets", (reach_daemons,)),
    Case(13, "stream socket to a path", (reach_daemon_by_path,)),
    Case(14, "abstract name of the harness", (reach_harness,)),
    Case(16, "fetch a page", (fetch,)),
    Case(40, "message to the next run", (leave_message, find_message)),
    Case(40, "segment for the next run", (leave_segment, find_segment)),
    Case(40, "key for the next run", (leave_key, find_key)),
    Case(27, "command lines of others", (look_around,), tiers=("T2",)),
    Case(12, "ports of the machine", (list_ports,), tiers=("T2",)),
    Case(40, "segments of the machine", (list_segments,), tiers=("T2",)),
)
