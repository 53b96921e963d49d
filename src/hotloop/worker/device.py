"""What device this judge works on: its name, versions and measured ceilings."""

from __future__ import annotations

import os
import platform
import statistics
import threading
from functools import cache
from pathlib import Path
from typing import Any

import torch

from hotloop.core.units import gbps, tflops
from hotloop.errors import DeviceLost, WorkerDied, WorkerTimeout
from hotloop.sandbox.nvml import NoReading, read_gpus
from hotloop.worker.gpu_health import CANARIES
from hotloop.worker.gpu_probes import FIRST_CANARY_S, run_canary
from hotloop.worker.precision import PRECISIONS, applied
from hotloop.worker.timed import make_clock_once
from hotloop.worker.workroom import GpuAddress

MATMUL_SIZE = 4096
COPY_BYTES = 1 << 30
CONFIRM_S = 10.0
"""For a sum of 1024 numbers."""


def check_device(device: str) -> None:
    """Make sure that the device is there and answers.

    A process that may be thrown away asks first: in this one a hung driver would not come back.

    Raises:
        DeviceLost: `cuda` was asked for, and no GPU answers or torch sees none.
    """
    if device != "cuda":
        return
    for _ in range(CANARIES):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        canary = run_canary(visible, deadline_s=FIRST_CANARY_S)
        if canary.problem is None or not canary.has_room:
            break
    else:
        raise DeviceLost(
            f"expected a CUDA GPU that works, got: {canary.problem}; use --device cpu, choose "
            "another GPU by CUDA_VISIBLE_DEVICES, or run `hotloop doctor` to see what is missing"
        )
    if not torch.cuda.is_available():
        raise DeviceLost(
            "expected a CUDA GPU that torch can use, found none; use --device cpu, or run "
            "`hotloop doctor` to see what is missing"
        )


def confirm_device() -> None:
    """Make sure that this process can still use the GPU, after a candidate's had failed on it.

    Whether the GPU itself works is found out by others (`gpu_watch.py`); where it does, a fresh
    judge goes on.

    Raises:
        WorkerDied: this process cannot use it any more; the failure was not the candidate's.
        WorkerTimeout: the GPU does not answer this process.
    """
    results: list[int | RuntimeError] = []

    def work() -> None:
        try:
            ones = torch.ones(1024, dtype=torch.int32, device="cuda")
            results.append(int(ones.sum().item()))
        except RuntimeError as exc:
            results.append(exc)

    # In a thread: a call into a hung driver does not come back, and the judge must say so.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(CONFIRM_S)
    if not results:
        raise WorkerTimeout(f"expected a sum from the GPU, got none within {CONFIRM_S:.0f} s")
    if isinstance(results[0], RuntimeError):
        said = str(results[0]).splitlines()[0][:200]
        raise WorkerDied(f"expected a judge that can use its GPU, got: {said}")
    if results[0] != 1024:
        raise DeviceLost(f"expected 1024 ones on the GPU, counted {results[0]}")


def environment(device: str, isolation: str) -> dict[str, Any]:
    """Return gpu, driver, cuda, torch, triton, python and isolation as text (None when absent)."""
    import triton

    on_gpu = device == "cuda"
    return {
        "gpu": torch.cuda.get_device_name() if on_gpu else None,
        "driver": _driver_version() if on_gpu else None,
        "cuda": torch.version.cuda if on_gpu else None,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
        "isolation": isolation,
    }


def gpu_address() -> GpuAddress:
    """Return the node and UUID of the GPU that torch uses as device 0.

    Raises:
        DeviceLost: the driver does not list it.
    """
    uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    for information in Path("/proc/driver/nvidia/gpus").glob("*/information"):
        fields: dict[str, str] = {}
        for line in information.read_text().splitlines():
            key, _, value = line.partition(":")
            fields[key.strip()] = value.strip()
        if fields.get("GPU UUID") == uuid:
            return GpuAddress(int(fields["Device Minor"]), uuid)
    raise DeviceLost(
        f"expected {uuid} below /proc/driver/nvidia/gpus, it is not there; is /proc mounted whole?"
    )


@cache
def peaks(dtype: str, *, tf32: bool = False) -> dict[str, float]:
    """Measure this GPU's ceilings once: copy rate (read + write) and matmul rate in `dtype`.

    The matmul is M = N = K = 4096 on random values; rates are medians of seven calls. `tf32`:
    float32 operands are rounded to TF32, as cuDNN's convolutions do where it is allowed.
    """
    clock = make_clock_once()
    kind = getattr(torch, dtype)
    if not kind.is_floating_point or kind.itemsize < 2:
        kind = torch.float32
    a = torch.randn(MATMUL_SIZE, MATMUL_SIZE, device="cuda").to(kind)
    with applied(PRECISIONS["tf32" if tf32 else "as_shipped"]):
        matmul_ms = statistics.median(clock.measure(lambda: a @ a)[1].elapsed_ms for _ in range(7))
    return {
        "copy_gbps": copy_rate_gbps(),
        "matmul_tflops": tflops(2.0 * MATMUL_SIZE**3, matmul_ms),
    }


@cache
def copy_rate_gbps() -> float:
    """Measure once how fast this GPU copies, in GB/s: read and write together."""
    clock = make_clock_once()
    source = torch.empty(COPY_BYTES, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    copy_ms = statistics.median(
        clock.measure(lambda: target.copy_(source))[1].elapsed_ms for _ in range(7)
    )
    return gbps(2 * COPY_BYTES, copy_ms)


@cache
def _driver_version() -> str | None:
    found = read_gpus()
    if isinstance(found, NoReading) or not found:
        return None
    return found[0].driver
