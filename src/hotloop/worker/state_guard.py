"""What a candidate's forward left behind in its process: threads, and patched entry points.

Runs in that process, so what it says is a claim. It catches the plain cheat and the accident.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

GRACE_S = 0.2
GRACE_STEPS = 10


def _entry_points() -> list[tuple[Any, str]]:
    from hotloop.worker import (
        channel,
        clock,
        copy_out,
        fingerprint,
        host,
        launches,
        library_calls,
        poison,
    )  # fmt: skip

    ours: list[ModuleType] = [channel, clock, copy_out, fingerprint, library_calls, poison]
    classes: list[Any] = [host.Host, launches.Launches, channel.Channel]
    theirs = [
        (torch, ("bitwise_or", "empty", "empty_like", "equal", "isnan")),
        (torch.cuda, ("synchronize", "Event", "memory_snapshot", "max_memory_allocated")),
        (torch.Tensor, ("copy_", "data_ptr", "untyped_storage", "reshape", "view", "fill_")),
        (time, ("perf_counter", "monotonic", "time")),
    ]
    points = [(owner, name) for owner, names in theirs for name in names]
    for owner in (*ours, *classes):
        points += [(owner, name) for name, value in vars(owner).items() if callable(value)]
    return points


class StateGuard:
    """Remembers this process as it was before the candidate was loaded."""

    def __init__(self) -> None:
        self._before = [
            (owner, name, getattr(owner, name, None)) for owner, name in _entry_points()
        ]
        self._code = {id(v): _code(v) for _, _, v in self._before}
        self.tasks_before = _tasks()
        self.frames_before = len(sys._current_frames())

    def describe(self) -> dict[str, Any]:
        """Return what is different now, as JSON values."""
        patched = [
            f"{getattr(owner, '__name__', owner)}.{name}"
            for owner, name, value in self._before
            if getattr(owner, name, None) is not value or _code(value) != self._code[id(value)]
        ]
        return {
            "patched": patched[:8],
            "python_threads": _least(self._new_threads) + 1,
            "tasks": _least(lambda: _tasks() - self.tasks_before),
        }

    def _new_threads(self) -> int:
        return len(sys._current_frames()) - self.frames_before


def _least(count: Callable[[], int]) -> int:
    """Return the lowest of a few counts: a thread that is about to end is none left behind."""
    found = count()
    for _ in range(GRACE_STEPS):
        if found <= 0:
            break
        time.sleep(GRACE_S / GRACE_STEPS)
        found = min(found, count())
    return found


def _code(value: Any) -> bytes | None:
    code = getattr(value, "__code__", None)
    return code.co_code if code is not None else None


def _tasks() -> int:
    return len(os.listdir("/proc/self/task"))
