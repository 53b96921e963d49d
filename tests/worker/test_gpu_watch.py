"""The watch over a GPU, with real children that answer, hang, lie or crash in NVML's place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hotloop.core.gpu_reading import GpuReading
from hotloop.core.units import GIB, MIB
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.errors import DeviceLost, InfraError
from hotloop.sandbox.nvml import NoReading, read_gpu
from hotloop.worker.forking import Exit
from hotloop.worker.gpu_health import Canary
from hotloop.worker.gpu_probes import Probes, run_canary
from hotloop.worker.gpu_watch import LATE_S, GpuWatch

UUID = "GPU-1"
NOBODY = 1 << 22
"""No process has this number: it is the largest limit that Linux allows."""
KILLED = Exit(None, 9)
ORDERLY = Exit(0, None)
HANGS = "import time; time.sleep(60)"
CRASHES = "import os; os.abort()"
TOLD = "print(open('{path}').read())"


def deadline_s(code: str) -> float:
    return 0.5 if code == HANGS else 20.0


@dataclass
class Machine:
    """A machine whose NVML and canary are real processes; the clock moves when somebody sleeps."""

    folder: Path
    nvml: str = TOLD
    canary: str = TOLD
    device_bytes: int = 1 * GIB
    own_bytes: int = 0
    now_s: float = 0.0
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.say_nvml()
        self.say_canary({"ok": True, "kernel": True, "gbps": 3000.0})

    def say_nvml(
        self,
        *,
        used_bytes: int = 1 * GIB + 500 * MIB,
        pids: tuple[int, ...] = (os.getpid(),),
        each_bytes: int | None = GIB,
    ) -> None:
        listed = [{"pid": p, "used_bytes": each_bytes} for p in pids]
        gpu = {
            "uuid": UUID, "name": "NVIDIA H200", "driver": "580", "total_bytes": 141 * GIB,
            "used_bytes": used_bytes, "processes": listed,
        }  # fmt: skip
        (self.folder / "nvml").write_text(json.dumps({"gpus": [gpu]}))

    def say_canary(self, answer: object) -> None:
        (self.folder / "canary").write_text(json.dumps(answer))

    def command(self, name: str, code: str) -> list[str]:
        self.asked.append(name)
        return [sys.executable, "-S", "-c", code.format(path=self.folder / name)]

    def probes(self) -> Probes:
        def read() -> GpuReading | NoReading:
            return read_gpu(UUID, deadline_s(self.nvml), command=self.command("nvml", self.nvml))

        def canary() -> Canary:
            command = self.command("canary", self.canary)
            return run_canary(UUID, command=command, deadline_s=deadline_s(self.canary))

        def sleep(seconds: float) -> None:
            self.now_s += 20 * seconds

        return Probes(
            read=read,
            read_first=read,
            canary=canary,
            device_bytes=lambda: self.device_bytes,
            own_bytes=lambda: self.own_bytes,
            now_s=lambda: self.now_s,
            sleep=sleep,
        )

    def watch(self) -> GpuWatch:
        watch = GpuWatch(UUID, self.probes())
        assert watch.begin() is None
        self.asked.clear()
        return watch


@dataclass
class Ended:
    """A child that has ended already, or never does."""

    pid: int
    end: Exit | None

    def kill(self) -> Exit | None:
        return self.end


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def verdict(kind: str | None = None) -> Verdict:
    evidence = None if kind is None else Evidence(kind=kind, message="x")
    return Verdict(
        status=Status.RUNTIME_ERROR if kind else Status.PASSED,
        stage=Stage.CORRECTNESS, message="x", candidate_id="c", problem_id="p", tier=Tier.FAST,
        device="cuda", evidence=evidence,
    )  # fmt: skip


def settle(watch: GpuWatch, end: Exit | None, kind: str | None = None, pid: int = NOBODY) -> None:
    watch.started(Ended(pid, end))
    watch.settle(verdict(kind))


def test_an_orderly_end_costs_no_look(machine: Machine) -> None:
    watch = machine.watch()
    settle(watch, ORDERLY)
    settle(watch, ORDERLY, "exception")
    assert machine.asked == []


@pytest.mark.parametrize(
    ("end", "kind"),
    [(KILLED, "timeout_gpu"), (Exit(1, None), None), (ORDERLY, "cuda_error"),
     (ORDERLY, "oom_gpu"), (KILLED, None)],
)  # fmt: skip
def test_a_bad_end_is_looked_at_and_the_gpu_cleared(
    machine: Machine, end: Exit, kind: str | None
) -> None:
    watch = machine.watch()
    settle(watch, end, kind)
    assert machine.asked == ["nvml", "canary"]
    settle(watch, ORDERLY)
    assert machine.asked == ["nvml", "canary"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.say_nvml(used_bytes=2 * GIB), "did not come back"),
        (lambda m: m.say_nvml(pids=(os.getpid(), NOBODY)), "the driver still lists it"),
        (lambda m: setattr(m, "canary", HANGS), "did not answer within 0.5 s"),
        (lambda m: setattr(m, "canary", CRASHES), "a small test of it failed"),
        (lambda m: setattr(m, "canary", "print('ok')"), "a small test of it failed"),
        (lambda m: m.say_canary({"ok": False, "failed": "719"}), "719"),
        (lambda m: m.say_canary({"ok": True, "gbps": 9.0}), "copies 9 GB/s, 3000 before"),
    ],
    ids=["leaked", "listed", "canary hung", "canary crashed", "canary garbled", "canary failed",
         "canary slow"],
)  # fmt: skip
def test_what_is_not_proved_healthy_is_quarantined(
    machine: Machine, change: Callable[[Machine], None], said: str
) -> None:
    watch = machine.watch()
    change(machine)
    with pytest.raises(DeviceLost, match=said):
        settle(watch, KILLED)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "nvml", HANGS),
        lambda m: setattr(m, "nvml", CRASHES),
        lambda m: setattr(m, "nvml", "print('all is well')"),
        lambda m: m.say_nvml(used_bytes=142 * GIB),
        lambda m: m.say_nvml(used_bytes=9 * GIB, pids=(4242,)),
        lambda m: m.say_nvml(used_bytes=9 * GIB, pids=()),
        lambda m: m.say_nvml(used_bytes=9 * GIB, each_bytes=None),
    ],
    ids=["hung", "crashed", "garbled", "lied", "other namespace", "hidden", "no sizes"],
)
def test_where_nvml_cannot_tell_the_canary_decides(
    machine: Machine, change: Callable[[Machine], None]
) -> None:
    watch = machine.watch()
    change(machine)
    settle(watch, KILLED)
    assert machine.asked == ["nvml", "canary"]
    machine.say_canary({"ok": False, "failed": "719"})
    with pytest.raises(DeviceLost, match="719"):
        settle(watch, KILLED)


def test_a_canary_that_fails_once_is_asked_again(machine: Machine) -> None:
    machine.watch()
    probes = replace(
        machine.probes(), sleep=lambda _: machine.say_canary({"ok": True, "gbps": 1e3})
    )
    watch = GpuWatch(UUID, probes)
    watch.begin()
    machine.asked.clear()
    machine.say_canary({"ok": False, "failed": "719"})
    settle(watch, KILLED)
    assert machine.asked == ["nvml", "canary", "canary"]


def test_a_process_stuck_in_the_driver_is_enough_whatever_the_verdict(machine: Machine) -> None:
    watch = machine.watch()
    alive = os.getppid()
    with pytest.raises(DeviceLost, match=f"process {alive} does not end"):
        settle(watch, None, pid=alive)
    assert machine.asked == []
    assert machine.now_s >= LATE_S


def test_a_process_that_ends_late_is_waited_for(machine: Machine) -> None:
    machine.watch()
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])

    def sleep(_: float) -> None:
        child.kill()
        child.wait()

    watch = GpuWatch(UUID, replace(machine.probes(), sleep=sleep))
    watch.begin()
    machine.asked.clear()
    settle(watch, None, pid=child.pid)
    assert machine.asked == ["nvml", "canary"]


def test_memory_that_comes_back_late_is_waited_for(machine: Machine) -> None:
    watch = GpuWatch(UUID, replace(machine.probes(), sleep=lambda _: machine.say_nvml()))
    assert watch.begin() is None
    machine.asked.clear()
    watch.started(Ended(NOBODY, KILLED))
    machine.say_nvml(used_bytes=80 * GIB)
    watch.settle(verdict("oom_gpu"))
    assert machine.asked == ["nvml", "nvml", "canary"]


def test_what_the_judge_takes_itself_is_no_leak(machine: Machine) -> None:
    watch = machine.watch()
    watch.started(Ended(NOBODY, KILLED))
    # Tensors, an arena of the driver's, modules, stacks: whatever it is, NVML counts it for us.
    machine.say_nvml(used_bytes=31 * GIB + 500 * MIB, each_bytes=31 * GIB)
    watch.settle(verdict())


def test_what_it_takes_hides_no_leak(machine: Machine) -> None:
    watch = machine.watch()
    watch.started(Ended(NOBODY, KILLED))
    machine.say_nvml(used_bytes=32 * GIB + 500 * MIB, each_bytes=31 * GIB)
    with pytest.raises(DeviceLost, match="1024 MiB of its memory did not come back"):
        watch.settle(verdict())


def test_a_gpu_that_fails_its_first_test_is_never_used(machine: Machine) -> None:
    machine.say_canary({"ok": False, "failed": "cuCtxSynchronize returned 719"})
    with pytest.raises(DeviceLost, match=r"its first test.*719"):
        GpuWatch(UUID, machine.probes()).begin()


@pytest.mark.parametrize("nvml", ["raise SystemExit('NVML: not installed')", HANGS])
def test_without_nvml_at_the_start_the_canary_decides(machine: Machine, nvml: str) -> None:
    machine.nvml = nvml
    watch = machine.watch()
    settle(watch, KILLED)
    assert machine.asked == ["canary"]


def test_others_on_the_gpu_are_told_of(machine: Machine) -> None:
    machine.say_nvml(pids=(os.getpid(), 4242))
    told = GpuWatch(UUID, machine.probes()).begin()
    assert told == "GPU-1 is used by pid 4242 (1.0 GiB); 139.5 of 141.0 GiB are free"


def test_memory_is_not_watched_where_others_were_there_first(machine: Machine) -> None:
    machine.say_nvml(pids=(os.getpid(), 4242))
    watch = GpuWatch(UUID, machine.probes())
    watch.begin()
    machine.asked.clear()
    machine.say_nvml(used_bytes=100 * GIB)
    settle(watch, KILLED)
    assert machine.asked == ["canary"]


def test_what_lingers_for_a_moment_is_not(machine: Machine) -> None:
    machine.say_nvml(pids=(os.getpid(), 4242))
    probes = replace(machine.probes(), sleep=lambda _: machine.say_nvml())
    assert GpuWatch(UUID, probes).begin() is None


def test_too_little_free_memory_is_refused_and_says_who_holds_it(machine: Machine) -> None:
    machine.say_nvml(pids=(os.getpid(), 4242), used_bytes=140 * GIB)
    with pytest.raises(InfraError, match="expected 2 GiB of free memory.*pid 4242") as refused:
        GpuWatch(UUID, machine.probes()).begin()
    assert not isinstance(refused.value, DeviceLost)


def test_a_gpu_too_full_for_our_own_context_says_who_fills_it(machine: Machine) -> None:
    def full() -> int:
        raise RuntimeError("CUDA error: out of memory")

    probes = replace(machine.probes(), device_bytes=full)
    machine.say_nvml(pids=(4242,), used_bytes=140 * GIB + 900 * MIB)
    with pytest.raises(InfraError, match="expected 2 GiB of free memory.*pid 4242"):
        GpuWatch(UUID, probes).begin()
    machine.say_nvml(pids=(), used_bytes=0)
    with pytest.raises(DeviceLost, match="expected a CUDA context"):
        GpuWatch(UUID, probes).begin()
