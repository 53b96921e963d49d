"""How much memory each GPU has, asked of the driver, without importing torch."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop.core.gpu_reading import GpuReading
from hotloop.sandbox.nvml import NoReading, read_gpus


def gpu_memory_bytes(names: Sequence[str | None]) -> dict[str | None, int]:
    """Return the memory of each GPU, as `CUDA_VISIBLE_DEVICES` names it; empty where unknown."""
    found = read_gpus()
    return {} if isinstance(found, NoReading) else memory_of(names, found)


def memory_of(names: Sequence[str | None], readings: Sequence[GpuReading]) -> dict[str | None, int]:
    """Return the memory of each GPU out of what the driver says.

    A number gets the least of all: CUDA may count GPUs in another order than the driver.
    """
    if not readings:
        return {}
    least = min(reading.total_bytes for reading in readings)
    by_uuid = {reading.uuid: reading.total_bytes for reading in readings}
    return {name: by_uuid.get(name or "", least) for name in names}
