"""Watches the judge's GPU: a process that ended badly on it must have left it as it was.

Thin: `gpu_health.py` decides, `gpu_probes.py` looks. A GPU that cannot be proved healthy is a
`DeviceLost`; the verdict that was on its way is thrown away, because nobody knows whose fault it
was. Nothing is checked after an orderly end, so that an honest candidate costs nothing here.
"""

from __future__ import annotations

import os
import select
import sys
from typing import Protocol

from hotloop.core.gpu_reading import GpuReading
from hotloop.core.gpu_sharing import MIN_FREE_BYTES, describe_room, describe_sharing
from hotloop.core.units import GIB
from hotloop.core.verdict import Verdict
from hotloop.errors import DeviceLost, InfraError
from hotloop.sandbox.nvml import NoReading
from hotloop.worker.forking import Exit
from hotloop.worker.gpu_health import GpuHealth, GpuState, Step, Suspicion
from hotloop.worker.gpu_probes import Probes

LOOK_S = 0.25
LINGER_S = 1.0
LOOKS = 2
"""Processes of a judge that was just ended may still be listed for a second."""
LATE_S = 30.0
"""How much longer a killed process may take to end: a driver frees a lot of memory slowly."""
BAD_KINDS = frozenset({
    "cuda_error", "oom_gpu", "crash", "timeout_gpu", "output_limit", "policy_violation",
})  # fmt: skip
"""Evidence after which the GPU is looked at even where every process ended in order."""


class GpuProcessHandle(Protocol):
    """What the watch needs of a child that may use the GPU."""

    pid: int

    def kill(self) -> Exit | None:
        """End it if that has not happened; return how it ended, None when it does not."""


class GpuWatch:
    """One judge's view of its GPU's health."""

    def __init__(self, uuid: str, probes: Probes) -> None:
        """Look at nothing yet."""
        self._uuid = uuid
        self._probes = probes
        self._health = GpuHealth(uuid, own_pid=os.getpid())
        self._children: list[GpuProcessHandle] = []
        self._limit_bytes: int | None = None
        """Memory in use beside this process while no child lives; None: it is not watched. NVML
        counts for this process whatever it allocates, so that none of it looks like a leak."""

    def begin(self) -> str | None:
        """Test the GPU and see who else is on it; return that in words, None when nobody is.

        Raises:
            DeviceLost: the GPU does not work.
            InfraError: others leave too little memory.
        """
        self._health.suspect(Suspicion(why="its first test"))
        self._look()
        shared = None
        for _ in range(LOOKS):  # what an earlier judge left may linger for a moment
            before = self._device_bytes()  # makes our context, so that NVML counts it
            reading = self._probes.read_first()
            if isinstance(reading, NoReading):
                _log(f"memory on the GPU is not watched: {reading.reason}")
                return None
            shared = describe_sharing(
                reading,
                own_pid=None if before is None else os.getpid(),
                own_bytes=self._probes.own_bytes(),
            )
            if before is not None and shared is None:
                self._limit_bytes = reading.used_beside(os.getpid())
                break
            self._probes.sleep(LINGER_S)
        assert not isinstance(reading, NoReading), "that ended it above"
        _require_room(reading, shared)
        if before is None:
            raise DeviceLost(f"expected a CUDA context on {self._uuid}, got none: see judge.log")
        # Where others are, or come and go, memory is not watched.
        return None if shared is None else f"{self._uuid} is {shared}; {describe_room(reading)}"

    def _device_bytes(self) -> int | None:
        """Return the memory in use; None where there is not even room for our context."""
        try:
            return self._probes.device_bytes()
        except RuntimeError as exc:  # torch's, whatever the driver said
            _log(f"no CUDA context: {str(exc).splitlines()[0][:200]}")
            return None

    def started(self, child: GpuProcessHandle) -> None:
        """Note a child that may use the GPU."""
        self._children.append(child)

    def settle(self, verdict: Verdict) -> None:
        """Look at the GPU if a child ended badly; all have ended, or are ended here.

        Raises:
            DeviceLost: it cannot be proved healthy.
        """
        children, self._children = self._children, []
        ends = {child.pid: child.kill() for child in children}
        why = _why_suspect(ends, verdict)
        if why is None:
            return
        began_s = self._probes.now_s()
        unreaped = self._wait_for([pid for pid, end in ends.items() if end is None])
        self._health.suspect(
            Suspicion(
                why=why,
                pids=frozenset(ends),
                unreaped=unreaped,
                limit_bytes=self._limit_bytes,
                now_s=self._probes.now_s(),
            )
        )
        self._look()
        _log(f"the GPU is healthy after {why}: {self._probes.now_s() - began_s:.2f} s")

    def _wait_for(self, pids: list[int]) -> tuple[int, ...]:
        """Return which processes still run after `LATE_S`."""
        deadline_s = self._probes.now_s() + LATE_S
        while (left := [p for p in pids if _runs(p)]) and self._probes.now_s() < deadline_s:
            self._probes.sleep(LOOK_S)
        return tuple(left)

    def _look(self) -> None:
        health, probes = self._health, self._probes
        while (step := health.next_step) is not Step.DONE:
            if step is Step.CANARY:
                canary = probes.canary()
                health.saw_canary(canary)
                if health.next_step is Step.CANARY:
                    _log(f"a test of the GPU is made again: {canary}")
                    probes.sleep(LINGER_S)
                continue
            reading = probes.read()
            if isinstance(reading, NoReading):
                _log(f"NVML cannot be asked, a test of the GPU decides: {reading.reason}")
            health.saw_reading(reading, now_s=probes.now_s())
            if health.next_step is Step.READ:
                probes.sleep(LOOK_S)
        if health.state is GpuState.QUARANTINED:
            _log(health.message())
            raise DeviceLost(health.message())


def _runs(pid: int) -> bool:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        poller = select.poll()
        poller.register(process, select.POLLIN)
        return not poller.poll(0)  # readable once it has ended, reaped or not
    finally:
        os.close(process)


def _why_suspect(ends: dict[int, Exit | None], verdict: Verdict) -> str | None:
    for pid, end in ends.items():
        if end is None:
            return f"process {pid} was killed"
        if end.signal is not None or end.code != 0:
            return f"process {pid} {end.describe()}"
    if verdict.evidence is not None and verdict.evidence.kind in BAD_KINDS:
        return f"a candidate's {verdict.evidence.kind}"
    return None


def _require_room(reading: GpuReading, shared: str | None) -> None:
    if reading.free_bytes >= MIN_FREE_BYTES:
        return
    who = "" if shared is None else f"; it is {shared}"
    raise InfraError(
        f"{reading.uuid}: expected {MIN_FREE_BYTES / GIB:.0f} GiB of free memory, got "
        f"{describe_room(reading)}{who}; end what holds it, or choose another GPU by "
        "CUDA_VISIBLE_DEVICES"
    )


def _log(text: str) -> None:
    print(f"hotloop judge: {text}", file=sys.stderr, flush=True)
