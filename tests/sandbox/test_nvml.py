"""NVML's child: what it says, what is believed of it, and what it makes of library and tool."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

from hotloop.core.gpu_reading import GpuReading
from hotloop.sandbox.nvml import POLL, NoReading, read_gpu, read_gpus

UUID = "GPU-11111111-2222-3333-4444-555555555555"
GPU = {
    "uuid": UUID,
    "name": "NVIDIA H200",
    "driver": "580.159",
    "total_bytes": 141 << 30,
    "used_bytes": 1 << 30,
    "processes": [{"pid": 4242, "used_bytes": 500 << 20}],
}


def child(code: str) -> list[str]:
    """Return the command of a stand-in for the real child."""
    return [sys.executable, "-S", "-c", code]


def saying(answer: object) -> list[str]:
    return child(f"print({json.dumps(json.dumps(answer))})")


def test_a_reading_is_taken_as_it_is() -> None:
    found = read_gpu(UUID, command=saying({"gpus": [GPU]}))
    assert isinstance(found, GpuReading)
    assert (found.uuid, found.driver, found.pids) == (UUID, "580.159", {4242})
    assert found.free_bytes == 140 << 30


LIES = {
    "more memory in use than there is": {"gpus": [{**GPU, "used_bytes": 200 << 30}]},
    "negative memory": {"gpus": [{**GPU, "used_bytes": -1}]},
    "another GPU": {"gpus": [{**GPU, "uuid": "GPU-other"}]},
    "the GPU twice": {"gpus": [GPU, GPU]},
    "no GPU": {"gpus": []},
    "process 0": {"gpus": [{**GPU, "processes": [{"pid": 0, "used_bytes": None}]}]},
    "text for a number": {"gpus": [{**GPU, "total_bytes": "141"}]},
    "a field more": {"gpus": [{**GPU, "healthy": True}]},
    "no object": [1, 2],
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_no_reading(name: str) -> None:
    found = read_gpu(UUID, command=saying(LIES[name]))
    assert isinstance(found, NoReading)
    assert not found.is_silent


def test_what_hangs_is_silent_and_what_crashes_is_not() -> None:
    hung = read_gpus(0.2, command=child("import time; time.sleep(60)"))
    assert isinstance(hung, NoReading)
    assert hung.is_silent
    crashed = read_gpus(20, command=child("import os; os.abort()"))
    assert isinstance(crashed, NoReading)
    assert not crashed.is_silent
    garbled = read_gpus(20, command=child("print('{')"))
    assert isinstance(garbled, NoReading)
    assert "expected readings" in garbled.reason


LIBRARY = (
    '''
class NVMLError(Exception): pass
class NVMLError_GpuIsLost(NVMLError): pass
nvmlMemory_v2 = 2
class Memory:
    total, used = 141 << 30, 7 << 30
class Process:
    pid, usedGpuMemory = 77, None
def nvmlInit(): {init}
def nvmlSystemGetDriverVersion(): return b"580.159"
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(i):
    if i == 1: raise NVMLError_GpuIsLost("GPU is lost")
    return i
def nvmlDeviceGetHandleByUUID(uuid): return 0
def nvmlDeviceGetMemoryInfo(handle, version=None):
    if version is not None: raise NVMLError("not supported")
    return Memory
def nvmlDeviceGetComputeRunningProcesses(handle): return [Process]
def nvmlDeviceGetUUID(handle): return b"'''
    + UUID
    + """"
def nvmlDeviceGetName(handle): return "NVIDIA H200"
"""
)
TOOL = f"""#!/bin/sh
case "$1" in
  --query-gpu=*) echo "{UUID}, NVIDIA H200, 580.159, 144384, 1024" ;;
  *) echo "{UUID}, 4242, 512"; echo "{UUID}, 4243, [N/A]" ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose `pynvml.py` and `nvidia-smi` the real child finds first."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    return tmp_path


def with_library(folder: Path, init: str) -> None:
    (folder / "pynvml.py").write_text(LIBRARY.format(init=textwrap.dedent(init)))


def with_tool(folder: Path, text: str) -> None:
    (folder / "nvidia-smi").write_text(text)
    (folder / "nvidia-smi").chmod(0o755)


def test_the_library_is_asked_and_a_lost_gpu_hides_no_other(machine: Path) -> None:
    with_library(machine, "pass")
    found = read_gpus(command=POLL)
    assert not isinstance(found, NoReading), found
    (gpu,) = found
    assert (gpu.uuid, gpu.used_bytes, gpu.processes[0].used_bytes) == (UUID, 7 << 30, None)


def test_processes_that_are_kept_secret_hide_no_gpu(machine: Path) -> None:
    refuses = "nvmlDeviceGetComputeRunningProcesses(handle): raise NVMLError('no permission')"
    text = LIBRARY.replace(
        "nvmlDeviceGetComputeRunningProcesses(handle): return [Process]", refuses
    )
    (machine / "pynvml.py").write_text(text.format(init="pass"))
    found = read_gpus(command=POLL)
    assert not isinstance(found, NoReading), found
    assert (found[0].used_bytes, found[0].processes) == (7 << 30, ())
    assert found[0].used_beside(77) is None


def test_the_tool_is_asked_where_the_library_fails(machine: Path) -> None:
    with_library(machine, "raise NVMLError('no driver')")
    with_tool(machine, TOOL)
    found = read_gpu(UUID, 20)
    assert isinstance(found, GpuReading), found
    assert (found.total_bytes, found.used_bytes) == (144384 << 20, 1 << 30)
    assert [(p.pid, p.used_bytes) for p in found.processes] == [(4242, 512 << 20), (4243, None)]


def test_both_fail_and_each_says_why(machine: Path) -> None:
    with_library(machine, "raise NVMLError('no driver')")
    with_tool(machine, "#!/bin/sh\necho 'No devices were found'; exit 6\n")
    found = read_gpus()
    assert isinstance(found, NoReading)
    assert "no driver" in found.reason
    assert "No devices were found" in found.reason


@pytest.mark.parametrize("where", ["library", "tool"])
def test_a_hang_inside_either_is_ended_with_the_child(machine: Path, where: str) -> None:
    if where == "library":
        with_library(machine, "__import__('time').sleep(60)")
    else:
        with_library(machine, "raise NVMLError('no driver')")
        with_tool(machine, "#!/bin/sh\nsleep 60\n")
    found = read_gpus(1.0)
    assert isinstance(found, NoReading)
    assert found.is_silent
