"""Binds, serves, and stops without a word when the user says so."""

from __future__ import annotations

import errno
import socket
from types import FrameType

import uvicorn

from hotloop.dashboard.app import Dashboard
from hotloop.errors import ConfigError, InfraError

_STOP_S = 2
"""Answers that are under way may take so long when the server stops."""


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ConfigError: the address is none of this machine's, or the port is not ours to use.
        InfraError: another program uses the port.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as exc:
        raise ConfigError(
            f"--host {host}: expected an address of this machine, like 127.0.0.1 ({exc.strerror})"
        ) from exc
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as exc:
        listener.close()
        raise _refused(host, port, exc) from exc
    return listener


def _refused(host: str, port: int, exc: OSError) -> Exception:
    if exc.errno == errno.EADDRINUSE:
        return InfraError(
            f"port {port} of {host} is in use by another program; give another --port, or "
            "--port 0 for any that is free"
        )
    if exc.errno in (errno.EACCES, errno.EPERM):
        return ConfigError(f"--port {port} is not yours to use; give one over 1023")
    return ConfigError(f"--host {host}: cannot be bound ({exc.strerror}); try 127.0.0.1")


class _Server(uvicorn.Server):
    """Ends its event streams with the first signal: they would keep it open."""

    def __init__(self, config: uvicorn.Config, dashboard: Dashboard) -> None:
        super().__init__(config)
        self._dashboard = dashboard

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._dashboard.streams.end()
        super().handle_exit(sig, frame)


def run(dashboard: Dashboard, listener: socket.socket) -> None:
    """Serve until the user stops it."""
    config = uvicorn.Config(
        dashboard.app,
        log_level="error",
        access_log=False,  # addresses may hold the token
        server_header=False,
        timeout_graceful_shutdown=_STOP_S,
        ws="none",
    )
    try:
        _Server(config, dashboard).run(sockets=[listener])
    except KeyboardInterrupt:
        return  # that is how it is stopped
    finally:
        listener.close()
