"""What proves a GPU healthy, on a GPU: NVML's child, the canary, and a watch from start to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from hotloop.core.gpu_reading import GpuReading
from hotloop.core.units import MIB
from hotloop.core.verdict import Stage, Status, Tier, Verdict
from hotloop.errors import DeviceLost
from hotloop.sandbox.nvml import POLL_S, NoReading, read_gpu, read_gpus
from hotloop.worker.device import confirm_device, gpu_address
from hotloop.worker.forking import Exit
from hotloop.worker.gpu_probes import probes_of, run_canary
from hotloop.worker.gpu_watch import GpuWatch
from hotloop.worker.memory import device_used_bytes

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]

HOLDER = """
import torch
kept = torch.empty({n_bytes}, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("ready", flush=True)
import time
time.sleep(60)
"""


@pytest.fixture(scope="module")
def uuid() -> str:
    return gpu_address().uuid


def reading_of(uuid: str) -> GpuReading:
    found = read_gpu(uuid, POLL_S)
    assert not isinstance(found, NoReading), found.reason
    return found


def test_nvml_lists_this_gpu(uuid: str) -> None:
    found = read_gpus()
    assert not isinstance(found, NoReading), found.reason
    assert uuid in {gpu.uuid for gpu in found}
    gpu = reading_of(uuid)
    assert gpu.name == torch.cuda.get_device_name()
    assert 0 < gpu.used_bytes < gpu.total_bytes


def test_nvml_and_the_runtime_count_memory_alike(uuid: str) -> None:
    device_used_bytes()  # makes this process's context, which NVML counts from then on
    before = reading_of(uuid).used_bytes - device_used_bytes()
    kept = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    after = reading_of(uuid).used_bytes - device_used_bytes()
    del kept
    assert abs(after - before) < 16 * MIB


def test_the_canary_passes_runs_its_kernel_and_is_quick(uuid: str) -> None:
    start = time.monotonic()
    found = run_canary(uuid)
    assert found.problem is None
    assert found.gbps is not None
    assert found.gbps > 50.0
    assert time.monotonic() - start < 10.0
    command = [sys.executable, "-P", "-m", "hotloop.worker.gpu_canary"]
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": uuid}
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=30)
    assert '"kernel": true' in said.stdout


def test_the_judges_own_context_is_confirmed() -> None:
    confirm_device()


class Holder:
    """A process of ours that holds memory on the GPU."""

    def __init__(self, n_bytes: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOLDER.format(n_bytes=n_bytes)], stdout=subprocess.PIPE
        )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def kill(self) -> Exit | None:
        self._process.kill()
        self._process.communicate(timeout=15)  # closes the pipe too
        return Exit(None, signal.SIGKILL)


VERDICT = Verdict(
    status=Status.PASSED, stage=Stage.CORRECTNESS, message="x", candidate_id="c", problem_id="p",
    tier=Tier.FAST, device="cuda",
)  # fmt: skip


def test_a_killed_process_leaves_the_gpu_healthy(
    uuid: str, capfd: pytest.CaptureFixture[str]
) -> None:
    watch = GpuWatch(uuid, probes_of(uuid))
    watch.begin()

    class Late:
        """Noted before it takes its memory, as a candidate is."""

        pid = 0

        def kill(self) -> Exit | None:
            holder = Holder(2 << 30)
            return holder.kill()

    watch.started(Late())
    watch.settle(VERDICT)
    assert "the GPU is healthy after" in capfd.readouterr().err


class Gone:
    """A child that was killed."""

    pid = 1 << 22

    def kill(self) -> Exit | None:
        return Exit(None, signal.SIGKILL)


def unlisted(found: GpuReading | NoReading) -> GpuReading | NoReading:
    """Return a reading that leaves out whoever is not this process, as with one who is dead."""
    assert not isinstance(found, NoReading), found.reason
    own = tuple(p for p in found.processes if p.pid == os.getpid())
    if not own or own[0].used_bytes is None:
        pytest.skip("NVML does not tell whose memory it is here: it is not watched")
    return replace(found, processes=own)


def test_memory_that_stays_is_noticed_and_our_own_is_not(uuid: str) -> None:
    """The same, with the memory still held: by a process that lives, in the name of the dead."""
    probes = probes_of(uuid)
    torch.cuda.empty_cache()
    watch = GpuWatch(uuid, replace(probes, read=lambda: unlisted(probes.read())))
    if watch.begin() is not None:
        pytest.skip("somebody else uses this GPU: memory says nothing")
    kept = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    watch.started(Gone())
    watch.settle(VERDICT)
    del kept
    holder = Holder(1 << 30)
    try:
        watch.started(Gone())
        with pytest.raises(DeviceLost, match="did not come back"):
            watch.settle(VERDICT)
    finally:
        holder.kill()
