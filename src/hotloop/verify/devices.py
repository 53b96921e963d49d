"""Which device to verify on: asked of the system, without importing torch."""

from __future__ import annotations

from pathlib import Path

from hotloop.core.gpu_reading import GpuReading
from hotloop.errors import ConfigError, DeviceLost
from hotloop.sandbox.nvml import NoReading, read_gpus

NODE = Path("/dev/nvidiactl")
DRIVER = Path("/proc/driver/nvidia/gpus")
"""One folder a GPU."""


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
    found = _ask_driver()
    if isinstance(found, tuple) and found:
        return "cuda"
    # NVML may be missing, or slow, where kernels run: the judge tests the GPU itself.
    if isinstance(found, NoReading) and (request == "cuda" or any(DRIVER.glob("*"))):
        return "cuda"
    if request == "cuda":
        raise DeviceLost(
            "--device cuda: expected an NVIDIA GPU, found none; use --device cpu, or run "
            "`hotloop doctor` to see what is missing"
        )
    return "cpu"


def gpu_names() -> tuple[str, ...]:
    """Return the names of the GPUs that the driver reports; empty without a driver."""
    found = _ask_driver()
    return () if isinstance(found, NoReading) else tuple(gpu.name for gpu in found)


def _ask_driver() -> tuple[GpuReading, ...] | NoReading:
    if not NODE.exists():
        return ()
    return read_gpus()
