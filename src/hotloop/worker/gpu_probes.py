"""How a GPU is looked at: by NVML and by a canary, each in a process that may be thrown away."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hotloop.core.gpu_reading import GpuReading
from hotloop.sandbox.disposable import ask_process
from hotloop.sandbox.nvml import FIRST_POLL_S, NoReading, read_gpu
from hotloop.worker.gpu_health import Canary

CANARY = (sys.executable, "-P", "-m", "hotloop.worker.gpu_canary")
CANARY_S = 20.0
"""CUDA starts in 0.2 to 0.4 s (docs/decisions/001) where the judge keeps the GPU awake."""
FIRST_CANARY_S = 50.0
"""A driver that nobody uses wakes its GPUs first, which takes seconds each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Everything that looks at one GPU; `gpu_watch.py` decides when."""

    read: Callable[[], GpuReading | NoReading]
    """NVML, once."""
    read_first: Callable[[], GpuReading | NoReading]
    """The same, with the time that a sleeping driver needs."""
    canary: Callable[[], Canary]
    device_bytes: Callable[[], int]
    """Memory in use on the GPU, by whomever, as the CUDA runtime says."""
    own_bytes: Callable[[], int]
    """Memory that this process's tensors and its allocator's cache take."""
    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def probes_of(uuid: str) -> Probes:
    """Return what looks at the GPU called `uuid`, which is device 0 of this process."""
    from hotloop.worker import memory  # torch: what decides is tested without it

    def canary() -> Canary:
        memory.release_memory()
        return run_canary(uuid)

    return Probes(
        read=partial(read_gpu, uuid),
        read_first=partial(read_gpu, uuid, FIRST_POLL_S),
        canary=canary,
        device_bytes=memory.device_used_bytes,
        own_bytes=memory.reserved_bytes,
    )


def run_canary(
    visible: str | None, *, command: Sequence[str] = CANARY, deadline_s: float = CANARY_S
) -> Canary:
    """Test a GPU in a process of its own.

    Args:
        visible: its UUID, or whatever CUDA_VISIBLE_DEVICES shall be; None: not set. The first one
            that it leaves is tested.
        command: what tests.
        deadline_s: for the whole test.
    """
    extra = {"CUDA_CACHE_DISABLE": "1"}
    if visible is not None:
        extra["CUDA_VISIBLE_DEVICES"] = visible
    answer = ask_process(command, deadline_s, extra=extra)
    if answer.text is None:
        return Canary(problem=answer.reason)
    try:
        said = json.loads(answer.text)
        if said["ok"] is True:
            return Canary(gbps=float(said["gbps"]))
        if "no_room" in said:
            return Canary(problem=str(said["no_room"])[:200], has_room=False)
        return Canary(problem=str(said["failed"])[:200])
    except (ValueError, KeyError, TypeError, RecursionError):
        return Canary(problem=f"expected the result of a test, got {answer.text[:80]!r}")
