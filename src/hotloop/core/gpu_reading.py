"""What the driver's management library (NVML) says of the GPUs: memory, and who uses it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """One process that holds a CUDA context on a GPU."""

    pid: int
    """As the host numbers it: inside a container it may be another process's number, or hidden."""
    used_bytes: int | None
    """None where the driver does not say."""

    def __post_init__(self) -> None:
        """Refuse what no driver says."""
        if self.pid <= 0 or (self.used_bytes is not None and self.used_bytes < 0):
            raise ValueError(f"expected a process and its memory, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One GPU at one moment."""

    uuid: str
    name: str
    driver: str
    total_bytes: int
    used_bytes: int
    """Without what the driver reserves for itself, where it tells the two apart."""
    processes: tuple[GpuProcess, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no driver says."""
        if not self.uuid or not 0 <= self.used_bytes <= self.total_bytes:
            raise ValueError(
                f"expected a GPU that uses 0 to all of its memory, got {self.uuid!r} with "
                f"{self.used_bytes} of {self.total_bytes} bytes"
            )

    @property
    def free_bytes(self) -> int:
        """Memory that nobody uses."""
        return self.total_bytes - self.used_bytes

    @property
    def pids(self) -> frozenset[int]:
        """The processes' numbers."""
        return frozenset(process.pid for process in self.processes)

    def used_beside(self, pid: int) -> int | None:
        """Return the memory that one process does not use; None where the driver does not say."""
        own_bytes = [p.used_bytes for p in self.processes if p.pid == pid]
        if len(own_bytes) != 1 or own_bytes[0] is None:
            return None
        return max(0, self.used_bytes - own_bytes[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReadings:
    """One GPU, or all that the driver lists."""

    gpus: tuple[GpuReading, ...]
