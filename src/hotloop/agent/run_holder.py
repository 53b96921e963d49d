"""Who works on a run: any process that holds its folder, also one that we did not start.

A run's process holds an advisory lock and writes its pid and host into the lock's file
(`store/lock.py`). The file stays when the process ends, so the lock itself is asked, and a process
is only told to stop when it has that very file open.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from hotloop.errors import ConfigError
from hotloop.store.lock import LOCK_FILE


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that works on a run."""

    pid: int
    host: str

    @property
    def is_here(self) -> bool:
        """Whether it runs on this machine."""
        return self.host == socket.gethostname()


def holder_of(folder: Path) -> Holder | None:
    """Return who holds a run's folder; None when nobody does."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        told = json.loads(os.pread(descriptor, 4096, 0) or b"{}")
        holder = Holder(int(told["pid"]), str(told["host"]))
        if holder.is_here and not _has_open(holder.pid, descriptor):
            return None
        return holder if _is_locked(descriptor) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        os.close(descriptor)


def stop_holder(folder: Path, within_s: float) -> None:
    """Tell whoever works on a run to end, as Ctrl-C does, and wait for it.

    Raises:
        ConfigError: it runs on another host, is another user's, or goes on all the same.
    """
    holder = holder_of(folder)
    if holder is None:
        return
    who = f"the run {folder.name} belongs to process {holder.pid} on {holder.host}"
    if not holder.is_here:
        raise ConfigError(f"{who}; stop it there, with Ctrl-C or kill -INT {holder.pid}")
    try:
        has_ended = _interrupt(folder, holder, within_s)
    except ProcessLookupError:
        return
    except PermissionError:
        raise ConfigError(f"{who}, which is another user's; stop it as that user") from None
    if not has_ended:
        raise ConfigError(
            f"{who}, was told to stop and goes on after {within_s:.0f} s; see what it waits for, "
            "or stop the run once more to stop it at once"
        )


def _interrupt(folder: Path, holder: Holder, within_s: float) -> bool:
    """Send Ctrl-C's signal; return whether the process ended within so many seconds."""
    process = os.pidfd_open(holder.pid)
    try:
        if holder_of(folder) != holder:  # its number may be another's by now
            return True
        signal.pidfd_send_signal(process, signal.SIGINT)
        ended, _, _ = select.select([process], [], [], within_s)
        return bool(ended)
    finally:
        os.close(process)


def held_since_ns(folder: Path) -> int | None:
    """Return when somebody last took a run's folder; None when nobody did."""
    try:
        return (folder / LOCK_FILE).lstat().st_mtime_ns
    except OSError:
        return None


def _has_open(pid: int, descriptor: int) -> bool:
    """Whether a process has the file of our descriptor open; True where that cannot be seen."""
    ours = os.fstat(descriptor)
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except FileNotFoundError:
        return False
    except OSError:  # another user's
        return True
    for name in names:
        try:
            theirs = os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino):
            return True
    return False


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False
