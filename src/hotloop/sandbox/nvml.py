"""Ask NVML how the GPUs are, always in a disposable process: a call can hang in the driver.

The process is `hotloop.worker.nvml_poll`. Nothing else in hotloop calls NVML or nvidia-smi.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.core.gpu_reading import GpuReading, GpuReadings
from hotloop.core.record import from_json
from hotloop.sandbox.disposable import ask_process

POLL_S = 5.0
"""For an answer of a driver that is awake: some process holds a context on the GPU."""
FIRST_POLL_S = 15.0
"""A driver that nobody uses wakes its GPUs first, which takes a second or more each."""

POLL = (sys.executable, "-P", "-m", "hotloop.worker.nvml_poll")


@dataclass(frozen=True, slots=True)
class NoReading:
    """NVML gave no usable answer."""

    reason: str
    is_silent: bool = False
    """Whether it did not answer in time, as a hung driver does."""


def read_gpus(
    deadline_s: float = FIRST_POLL_S, *, command: Sequence[str] = POLL
) -> tuple[GpuReading, ...] | NoReading:
    """Return every GPU that the driver lists, in its order."""
    answer = ask_process(command, deadline_s)
    if answer.text is None:
        return NoReading(answer.reason, answer.is_silent)
    try:
        return from_json(GpuReadings, json.loads(answer.text)).gpus
    except (ValueError, RecursionError) as exc:
        return NoReading(f"expected readings of GPUs, got {answer.text[:80]!r} ({str(exc)[:200]})")


def read_gpu(
    uuid: str, deadline_s: float = POLL_S, *, command: Sequence[str] = POLL
) -> GpuReading | NoReading:
    """Return the GPU called `uuid`."""
    found = read_gpus(deadline_s, command=(*command, uuid))
    if isinstance(found, NoReading):
        return found
    listed = [gpu for gpu in found if gpu.uuid == uuid]
    if len(listed) == 1:
        return listed[0]
    return NoReading(f"expected a reading of {uuid}, got {[gpu.uuid for gpu in found]}")
