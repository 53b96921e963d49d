"""The judge tells the watch of every process, on the CPU: a kill is looked at, an exit is not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import scaled_rows

from hotloop.core.gpu_reading import GpuProcess, GpuReading
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.errors import DeviceLost
from hotloop.sandbox import Tier as Isolation
from hotloop.worker.gpu_health import Canary
from hotloop.worker.gpu_probes import Probes
from hotloop.worker.gpu_watch import GpuWatch
from hotloop.worker.judge import Judge

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

HANGS = scaled_rows.triton(scaled_rows.forward("while True: pass"))
RAISES = scaled_rows.triton(scaled_rows.forward("raise ValueError('no')"))
OURS = GpuProcess(pid=os.getpid(), used_bytes=0)
IDLE = GpuReading(
    uuid="GPU-1", name="fake", driver="1", total_bytes=8 << 30, used_bytes=0, processes=(OURS,)
)


@dataclass
class Looks:
    """What was looked at, and what a canary finds."""

    found: list[str] = field(default_factory=list)
    canary: Canary = Canary(gbps=1000.0)  # noqa: RUF009  frozen

    def look(self) -> Canary:
        self.found.append("canary")
        return self.canary

    def read(self) -> GpuReading:
        self.found.append("nvml")
        return IDLE


@dataclass
class Watched:
    judge: Judge
    looks: Looks

    def verify(self, kernel: scaled_rows.Candidate) -> Verdict:
        self.looks.found.clear()
        answer = self.judge.verify({"candidate": to_json(kernel), "tier": Tier.FAST.value})
        return from_json(Verdict, answer)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    path: Path = scaled_rows.write_problem(tmp_path_factory.mktemp("problem"))
    judge, looks = Judge(Isolation.NONE, ThreadPoolExecutor(1)), Looks()
    try:
        judge.hello({"device": "cpu", "tier": "T0", "call_timeout_s": 2.0})
        assert judge._room is not None
        probes = Probes(
            read=looks.read, read_first=looks.read, canary=looks.look,
            device_bytes=lambda: 0, own_bytes=lambda: 0,
        )  # fmt: skip
        judge._room.watch = GpuWatch("GPU-1", replace(probes, sleep=lambda _: None))
        judge._room.watch.begin()
        judge.load({"problem": to_json(scaled_rows.problem(path, "cpu", rows=8, columns=48))})
        yield Watched(judge, looks)
    finally:
        judge.close()


def test_orderly_candidates_are_not_looked_after(watched: Watched) -> None:
    assert watched.verify(scaled_rows.triton()).status is Status.PASSED
    assert watched.looks.found == []
    assert watched.verify(RAISES).status is Status.RUNTIME_ERROR
    assert watched.looks.found == []


def test_a_killed_candidate_is_and_the_next_one_passes(watched: Watched) -> None:
    found = watched.verify(HANGS)
    assert found.status is Status.TIMEOUT
    assert found.stage_s["correctness"] < 30.0  # it would hang for ever
    assert watched.looks.found == ["nvml", "canary"]
    assert watched.verify(scaled_rows.triton()).status is Status.PASSED


def test_a_gpu_that_is_not_healthy_then_takes_the_verdict_away(watched: Watched) -> None:
    watched.looks.canary = Canary(problem="it hangs")
    with pytest.raises(DeviceLost, match="was ended by SIGKILL: a small test of it failed"):
        watched.verify(HANGS)
