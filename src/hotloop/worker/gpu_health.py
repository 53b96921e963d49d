"""What is known of a GPU's health, and what has to be seen before it is trusted again.

Pure: it is told what was seen and asked what to look at next; it starts nothing and reads no clock.

    HEALTHY --a process ended badly--> SUSPECT --reaped, memory back, canary passes--> HEALTHY
                                          |--proof that it is not--> QUARANTINED, for good

What cannot be told, such as whose memory it is or what an NVML that says nothing would say, is no
proof: the canary decides then.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from hotloop.core.gpu_reading import GpuReading
from hotloop.core.units import MIB
from hotloop.sandbox.nvml import NoReading

CANARIES = 2
"""So many in a row must fail: the first one's process may have been at fault, or late."""
SETTLE_S = 10.0
"""How long the driver may take to give a dead process's memory back."""
SLACK_BYTES = 256 * MIB
"""By how much the memory in use may have grown since the judge began: what the driver keeps for
itself after a fault, with no process left, not what leaks. A dead process whose memory is stuck
leaves its context at least, which is more."""
SLOWEST_FRAC = 0.1
"""Copies at less than this share of their first rate, the best of many, are no sharing of the GPU
any more."""


class GpuState(Enum):
    """Whether candidates may run."""

    HEALTHY = auto()
    SUSPECT = auto()
    """A process on it ended badly; nothing has been looked at since, or not all."""
    QUARANTINED = auto()
    """No more candidates, ever; nobody but the machine's operator can mend it."""


class Step(Enum):
    """What to look at next."""

    READ = auto()
    """NVML: processes and memory."""
    CANARY = auto()
    DONE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """How a small test of the GPU in a process of its own went."""

    problem: str | None = None
    """None: it passed."""
    has_room: bool = True
    """False: there was no memory for it, which says nothing of the GPU."""
    gbps: float | None = None
    """Rate of copies on the GPU, read + write, in 1e9 bytes a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """What gives rise to a check."""

    why: str
    """For example `process 123 was ended by SIGKILL`."""
    pids: frozenset[int] = frozenset()
    """Processes that ended: the driver must not list them any more."""
    unreaped: tuple[int, ...] = ()
    """Processes that did not end although they were killed: they are stuck in the driver."""
    limit_bytes: int | None = None
    """What was in use before them beside the judge's own; None where NVML cannot tell."""
    now_s: float = 0.0


class GpuHealth:
    """The health of one GPU."""

    def __init__(self, gpu: str, *, own_pid: int) -> None:
        """Trust the GPU for now.

        Args:
            gpu: its name in messages.
            own_pid: the judge, which holds a context: where NVML does not list it, it numbers
                processes in another namespace, and no number is believed.
        """
        self.state = GpuState.HEALTHY
        self.reason = ""
        self._gpu = gpu
        self._own_pid = own_pid
        self._first_gbps: float | None = None
        self._suspicion = Suspicion(why="nothing")
        self._must_read = False
        self._failed_canaries = 0

    @property
    def next_step(self) -> Step:
        """What to look at next; DONE when there is nothing to decide."""
        if self.state is not GpuState.SUSPECT:
            return Step.DONE
        return Step.READ if self._must_read else Step.CANARY

    def suspect(self, suspicion: Suspicion) -> None:
        """A process ended badly, or nobody has looked yet."""
        if self.state is GpuState.QUARANTINED:
            return
        self._suspicion = suspicion
        self._must_read = suspicion.limit_bytes is not None
        self._failed_canaries = 0
        self.state = GpuState.SUSPECT
        if suspicion.unreaped:
            pids = ", ".join(map(str, suspicion.unreaped))
            self._quarantine(f"process {pids} does not end, so it hangs in the driver")

    def saw_reading(self, reading: GpuReading | NoReading, *, now_s: float) -> None:
        """Take in what NVML said: where that is nothing, the canary decides.

        Args:
            reading: its answer.
            now_s: on the clock of the suspicion.
        """
        if self.next_step is not Step.READ:
            return
        problem = None if isinstance(reading, NoReading) else self._unsettled(reading)
        if problem is None:
            self._must_read = False
        elif now_s - self._suspicion.now_s >= SETTLE_S:
            self._quarantine(problem)

    def saw_canary(self, canary: Canary) -> None:
        """Take in how the canary went."""
        if self.next_step is not Step.CANARY:
            return
        if not canary.has_room:
            self.state = GpuState.HEALTHY
            return
        problem = self._fault(canary)
        if problem is None:
            self._first_gbps = self._first_gbps or canary.gbps
            self.state = GpuState.HEALTHY
            return
        self._failed_canaries += 1
        if self._failed_canaries >= CANARIES:
            self._quarantine(problem)

    def message(self) -> str:
        """Return one line: what happened, what follows, what to do."""
        return (
            f"{self._gpu} is quarantined after {self._suspicion.why}: {self.reason}; no more "
            "candidates run on it. hotloop never resets a GPU: look at nvidia-smi, end what still "
            "runs there or tell the machine's operator, or choose another GPU by "
            "CUDA_VISIBLE_DEVICES, then give the same command again"
        )

    def _fault(self, canary: Canary) -> str | None:
        if canary.problem is not None:
            return f"a small test of it failed ({canary.problem})"
        if self._first_gbps is None or canary.gbps is None:
            return None
        if canary.gbps >= SLOWEST_FRAC * self._first_gbps:
            return None
        return f"it copies {canary.gbps:.0f} GB/s, {self._first_gbps:.0f} before"

    def _unsettled(self, reading: GpuReading) -> str | None:
        """Return what is not yet as it was before; None when all is, or nobody can tell."""
        if self._own_pid in reading.pids:
            dead = reading.pids & self._suspicion.pids
            if dead:
                pids = ", ".join(str(pid) for pid in sorted(dead))
                return f"process {pids} has ended and the driver still lists it"
        others_bytes = reading.used_beside(self._own_pid)
        if others_bytes is None or len(reading.processes) > 1:
            return None  # the judge's memory, and that of strangers, comes and goes too
        assert self._suspicion.limit_bytes is not None, "there is nothing to read without it"
        over_bytes = others_bytes - self._suspicion.limit_bytes
        if over_bytes <= SLACK_BYTES:
            return None
        return f"{over_bytes / MIB:.0f} MiB of its memory did not come back"

    def _quarantine(self, reason: str) -> None:
        self.state = GpuState.QUARANTINED
        self.reason = reason
