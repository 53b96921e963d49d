"""Shared memory of an emulated thread block, and its barriers, with who did what and when.

Times are vector clocks: a dictionary says how far each partition, or copy, is known to have come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gluon_values import Dtype

Clock = dict[Any, int]

UNFINISHED = 1 << 60
"""The time of an access that is still under way: no clock is ever that far."""


class KernelFault(AssertionError):
    """The kernel does what hardware does not forgive."""


class Deadlock(KernelFault):
    """Every partition waits, and no copy is under way."""


def merge(into: Clock, other: Clock) -> None:
    for key, time in other.items():
        into[key] = max(into.get(key, 0), time)


class Barrier:
    """An mbarrier: phases end when all arrivals and all expected bytes are in."""

    def __init__(self) -> None:
        self.name, self.count = "barrier", 0
        self.pending = self.bytes_due = self.phases = 0
        self.gathering: Clock = {}
        self.passed: Clock = {}

    def init(self, count: int) -> None:
        """Set how many arrivals end a phase."""
        self.count = self.pending = int(count)

    def arrive(self, clock: Clock, *, count: int = 1, bytes_due: int = 0) -> None:
        """Arrive, and expect further bytes in this phase."""
        if self.pending < count:
            raise KernelFault(f"{self.name}: more arrivals than the {self.count} of a phase")
        self.pending -= count
        self.bytes_due += bytes_due
        merge(self.gathering, clock)
        self._end_phase()

    def complete(self, n_bytes: int, clock: Clock) -> None:
        """Take the bytes of a copy."""
        self.bytes_due -= n_bytes
        merge(self.gathering, clock)
        self._end_phase()

    def is_over(self, parity: int) -> bool:
        """Whether the phase of this parity is the last that ended."""
        return (self.phases & 1) != parity

    def _end_phase(self) -> None:
        if self.pending == 0 and self.bytes_due == 0:
            self.phases += 1
            self.pending, self.passed, self.gathering = self.count, self.gathering, {}


@dataclass
class Slot:
    """One buffer of shared memory, and who used it."""

    name: str
    data: np.ndarray
    dtype: Dtype
    written: tuple[Any, int] | None = None
    """Who wrote last, and when on its clock."""
    reads: Clock = field(default_factory=dict)
    copying: str | None = None
    """The copy under way, if there is one."""
    fenced: bool = True
