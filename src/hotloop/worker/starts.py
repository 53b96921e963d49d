"""Starts: threads and processes that begin while a candidate's forward runs.

Torch's modes watch one thread of one process. What another thread or a child does is not seen, and
one that ends before forward returns leaves nothing behind. So each start is counted, from before
the candidate is imported.

Covered: Python's threads by whatever name, fork, spawn, exec and what is built on them. Not
covered: threads that C++ starts; those that stay are told by `state_guard.py` on a CPU.
"""

from __future__ import annotations

import _posixsubprocess
import _thread
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

_BY_NAME: tuple[tuple[Any, str], ...] = (
    (_thread, "start_new_thread"),
    (_thread, "start_new"),
    (_thread, "start_joinable_thread"),
    (threading, "_start_new_thread"),
    (threading, "_start_joinable_thread"),
    (_posixsubprocess, "fork_exec"),
)
"""Python says nothing of these (threads: before 3.13), so callers find a wrapper."""
_EVENTS = frozenset(
    {
        "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system",
        "subprocess.Popen",
    }
)  # fmt: skip


class Starts:
    """Counts what begins in this process, once it is installed; an audit hook stays for good."""

    def __init__(self) -> None:
        self.count = 0
        self._saved: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Stand before every way to begin a thread or a process."""
        for owner, name in _BY_NAME:
            stock = getattr(owner, name, None)
            if stock is not None:
                self._saved.append((owner, name, stock))
                setattr(owner, name, self._counted(stock))
        sys.addaudithook(self._hear)

    def remove(self) -> None:
        """Give the names back."""
        for owner, name, stock in self._saved:
            setattr(owner, name, stock)
        self._saved = []

    def _counted(self, stock: Callable[..., Any]) -> Callable[..., Any]:
        def start(*args: Any, **named: Any) -> Any:
            self.count += 1
            return stock(*args, **named)

        return start

    def _hear(self, event: str, _: Sequence[Any]) -> None:
        if event in _EVENTS:
            self.count += 1
