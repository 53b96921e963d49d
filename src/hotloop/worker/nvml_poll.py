"""Print what NVML says of the GPUs as one JSON object: `python -m hotloop.worker.nvml_poll [UUID]`.

A process of its own, because a call can hang in the driver; whoever starts it has a deadline
(`sandbox/nvml.py`). With nvidia-ml-py where it is installed, else by nvidia-smi. It reads and
changes no setting.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

from hotloop.core.gpu_reading import GpuProcess, GpuReading, GpuReadings
from hotloop.core.record import to_json

LIFE_S = 60
"""Should whoever asks die, nobody else ends this process."""
_GPU_FIELDS = "uuid,name,driver_version,memory.total,memory.used"
_PROCESS_FIELDS = "gpu_uuid,pid,used_memory"


def main(arguments: list[str]) -> int:
    """Print the readings; return the exit code, 1 with a line on stderr where there are none."""
    signal.alarm(LIFE_S)
    uuid = arguments[0] if arguments else None
    try:
        gpus = _by_library(uuid)
    except Exception as exc:  # noqa: BLE001  not installed, too old, or the driver refuses
        try:
            gpus = _by_tool(uuid)
        except (OSError, subprocess.SubprocessError, ValueError) as second:
            print(f"nvidia-ml-py: {_said(exc)}; nvidia-smi: {_said(second)}", file=sys.stderr)
            return 1
    print(json.dumps(to_json(GpuReadings(gpus=tuple(gpus)))))
    return 0


def _by_library(uuid: str | None) -> list[GpuReading]:
    import pynvml

    pynvml.nvmlInit()
    driver = _text(pynvml.nvmlSystemGetDriverVersion())
    if uuid is not None:
        return [_reading(pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid), driver)]
    found = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            found.append(_reading(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index), driver))
        except pynvml.NVMLError as exc:  # one lost GPU must not hide the others
            print(f"GPU {index}: {_said(exc)}", file=sys.stderr)
    return found


def _reading(nvml: Any, handle: Any, driver: str) -> GpuReading:
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except (nvml.NVMLError, AttributeError, TypeError):  # older ones count the reserved as used
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    try:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except nvml.NVMLError:  # some containers and virtual GPUs refuse; what is in use still counts
        processes = []
    return GpuReading(
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        name=_text(nvml.nvmlDeviceGetName(handle)),
        driver=driver,
        total_bytes=int(memory.total),
        used_bytes=int(memory.used),
        processes=tuple(GpuProcess(pid=int(p.pid), used_bytes=p.usedGpuMemory) for p in processes),
    )


def _by_tool(uuid: str | None) -> list[GpuReading]:
    processes: dict[str, list[GpuProcess]] = {}
    for owner, pid, used in _rows("--query-compute-apps", _PROCESS_FIELDS, uuid):
        process = GpuProcess(pid=int(pid), used_bytes=_mib(used) if used.isdecimal() else None)
        processes.setdefault(owner, []).append(process)
    return [
        GpuReading(
            uuid=row[0],
            name=row[1],
            driver=row[2],
            total_bytes=_mib(row[3]),
            used_bytes=_mib(row[4]),
            processes=tuple(processes.get(row[0], ())),
        )
        for row in _rows("--query-gpu", _GPU_FIELDS, uuid)
    ]


def _rows(query: str, fields: str, uuid: str | None) -> list[list[str]]:
    # Without a deadline of its own: it is in our process group, which is killed as a whole.
    which = [] if uuid is None else ["-i", uuid]
    done = subprocess.run(
        ["nvidia-smi", f"{query}={fields}", "--format=csv,noheader,nounits", *which],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise ValueError((done.stderr or done.stdout).strip() or f"code {done.returncode}")
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    return [row for row in rows if len(row) == fields.count(",") + 1]


def _mib(text: str) -> int:
    return int(text) << 20


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _said(exc: BaseException) -> str:
    if isinstance(exc, (ModuleNotFoundError, FileNotFoundError)):
        return "not installed"
    lines = str(exc).strip().splitlines()
    return f"{type(exc).__name__}: {lines[-1][:200] if lines else 'no reason'}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
