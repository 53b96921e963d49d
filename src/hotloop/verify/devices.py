"""Which device to verify on: asked of the system, without importing torch."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hotloop.errors import ConfigError, DeviceLost

PROBE_S = 15.0


def find_device(request: str) -> str:
    """Return `cuda` or `cpu` for `auto`, `cuda` or `cpu`.

    Raises:
        ConfigError: the request is none of them.
        DeviceLost: `cuda` was asked for and no NVIDIA GPU answers.
    """
    if request not in ("auto", "cuda", "cpu"):
        raise ConfigError(f"--device: expected auto, cuda or cpu, got {request!r}")
    if request == "cpu":
        return "cpu"
    if gpu_names():
        return "cuda"
    if request == "cuda":
        raise DeviceLost(
            "--device cuda: expected an NVIDIA GPU, found none; use --device cpu, or run "
            "`hotloop doctor` to see what is missing"
        )
    return "cpu"


def gpu_names() -> tuple[str, ...]:
    """Return the names of the GPUs that the driver reports; empty without a driver.

    NVML can hang in the driver, so nvidia-smi asks, in a process with a deadline.
    """
    if not Path("/dev/nvidiactl").exists():
        return ()
    try:
        answer = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())
