"""What a candidate left behind in its process: threads, and patched entry points.

Runs in that process, so what it says is a claim. It catches the plain cheat and the accident.
Entry points are looked at after every request, from a frame that was running before the candidate
was imported: a patch is told by the very call that made it.
"""

from __future__ import annotations

import _thread
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

from hotloop.worker.frame_reads import FrameReads
from hotloop.worker.watch_state import WatchState

_count_threads = _thread._count  # bound before a candidate is there
GRACE_S = 0.2
GRACE_STEPS = 10


WATCHING = (
    "call_memory", "call_sites", "call_values", "census", "device_reads", "dispatch_witness",
    "dispatched", "element_widths", "fingerprint", "host_reads", "launches", "library_calls",
    "movements", "observation", "operation", "operation_history", "own_operators", "tensors_in",
    "value_sets",
)  # fmt: skip
"""Modules that a call's watch reads by: all their names stay what they are."""
OTHERS = (
    "candidate", "channel", "clock", "clocks", "copy_out", "frame_reads", "host", "poison",
    "starts", "state_guard", "watch_state",
)  # fmt: skip


def _modules(names: Sequence[str]) -> list[ModuleType]:
    return [importlib.import_module(f"hotloop.worker.{name}") for name in names]


def _entry_points() -> list[tuple[Any, str]]:
    ours = _modules((*WATCHING, *OTHERS))
    classes: list[Any] = [
        value
        for module in ours
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__.startswith("hotloop.worker.")
    ]
    theirs = [
        (torch, ("bitwise_or", "empty", "empty_like", "equal", "isnan")),
        (torch.cuda, ("synchronize", "Event", "memory_snapshot", "max_memory_allocated")),
        (torch.Tensor, ("copy_", "data_ptr", "untyped_storage", "reshape", "view", "fill_")),
        (time, ("perf_counter", "monotonic", "time")),
        (torch.utils._python_dispatch.TorchDispatchMode, ("__enter__", "__exit__")),
        (torch.overrides.TorchFunctionMode, ("__enter__", "__exit__")),
        (torch.autograd, ("_enable_profiler_legacy", "_disable_profiler_legacy")),
    ]
    points = [(owner, name) for owner, names in theirs for name in names]
    for owner in (*ours, *classes):
        points += [(owner, name) for name, value in vars(owner).items() if callable(value)]
    return points


def _launch_hooks() -> list[tuple[str, list[Any]]]:
    """Return Triton's hooks around a launch, by name: nobody has a reason to add one."""
    from triton import knobs

    names = ("launch_enter_hook", "launch_exit_hook")
    chains = [(name, getattr(knobs.runtime, name, None)) for name in names]
    return [(f"triton.{name}", getattr(chain, "calls", [])) for name, chain in chains]


class StateGuard:
    """Remembers this process as it was before the candidate was loaded."""

    def __init__(self, frames: FrameReads | None = None) -> None:
        """Remember it; `frames` says what was asked for that is no candidate's."""
        self._refused = frames.refused if frames is not None else []
        self._watching = WatchState(_modules(WATCHING))
        self.look = self._watching.look
        """Look at what the watch reads by, which a candidate may put back before it returns."""
        self._before = [
            (owner, name, getattr(owner, name, None)) for owner, name in _entry_points()
        ]
        self._code = {id(v): _code(v) for _, _, v in self._before}
        self._hooks = _launch_hooks()
        self.tasks_before = _tasks()
        self.threads_before = _python_threads()

    def describe(self) -> dict[str, Any]:
        """Return which threads are there that were not before, as JSON values."""
        # On a GPU the driver makes threads of its own, and to wait for them would take time.
        on_cpu = not torch.cuda.is_initialized()
        return {
            "python_threads": _least(self._new_threads) + 1,
            "tasks": _least(lambda: _tasks() - self.tasks_before) if on_cpu else 0,
        }

    def patched(self) -> list[str]:
        """Return the entry points that are not what they were, at most eight of them."""
        found = [
            f"{getattr(owner, '__name__', owner)}.{name}"
            for owner, name, value in self._before
            if getattr(owner, name, None) is not value or _code(value) != self._code[id(value)]
        ]
        self.look()
        found += [*self._watching.changed, *self._refused]
        return list(dict.fromkeys(found + [n for n, calls in self._hooks if calls]))[:8]

    def _new_threads(self) -> int:
        counts = zip(_python_threads(), self.threads_before, strict=True)
        return max(now - before for now, before in counts)


def _python_threads() -> tuple[int, int]:
    # A thread that runs a C function from its start has no frame; one that C made is not counted.
    return len(sys._current_frames()), _count_threads()


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
