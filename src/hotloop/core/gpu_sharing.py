"""Who else uses a GPU, in words: times taken beside another program mean little."""

from __future__ import annotations

from hotloop.core.gpu_reading import GpuProcess, GpuReading
from hotloop.core.units import GIB, MIB

QUIET_BYTES = 1536 * MIB
"""What a driver and one idle context of our own may hold; more is somebody else's."""
MIN_FREE_BYTES = 2 * GIB
"""Below this not even a small candidate fits: two CUDA contexts take about 1 GiB."""
_MAX_NAMED = 8


def describe_sharing(
    reading: GpuReading, *, own_pid: int | None = None, own_bytes: int = 0
) -> str | None:
    """Return who else is on the GPU, None where nobody is.

    Args:
        reading: what the driver says.
        own_pid: a process of ours that holds a context there. Where the driver lists others but
            not this one, it counts processes in another namespace: no number is believed then.
        own_bytes: what our tensors take.
    """
    numbers_are_ours = own_pid is None or own_pid in reading.pids
    others = [p for p in reading.processes if p.pid != own_pid] if numbers_are_ours else []
    if others:
        more = len(others) - _MAX_NAMED
        named = ", ".join(_named(process) for process in others[:_MAX_NAMED])
        return f"used by {named}" + (f" and {more} more" if more > 0 else "")
    if own_pid in reading.pids:
        return None  # the list is whole, and it is ours alone
    held_bytes = reading.used_bytes - own_bytes
    if held_bytes > QUIET_BYTES:
        return f"used by programs that are not listed here, which hold {held_bytes / GIB:.1f} GiB"
    return None


def describe_room(reading: GpuReading) -> str:
    """Return how much of its memory is free."""
    return f"{reading.free_bytes / GIB:.1f} of {reading.total_bytes / GIB:.1f} GiB are free"


def _named(process: GpuProcess) -> str:
    if process.used_bytes is None:
        return f"pid {process.pid}"
    return f"pid {process.pid} ({process.used_bytes / GIB:.1f} GiB)"
