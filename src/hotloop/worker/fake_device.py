"""An sm_90 GPU that is not there: answers to the questions that host code asks about the device.

Candidate code asks for the number of multiprocessors to size a persistent grid, for the capability
to choose a path, for the shared memory to choose a tile. Both CPU-only lanes (Triton's interpreter
and the ahead-of-time compiler) give one fixed answer, that of an H200, so that the same path is
taken as there. Nothing here runs on, or pretends to time, a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget

from hotloop.worker import fake_streams

SHARED_MEMORY_OPTIN_BYTES = 227 * 1024
"""Shared memory one block may use on sm_90 (CUDA Programming Guide, "Compute Capabilities")."""

TARGET = GPUTarget("cuda", 90, 32)

CUDA_PROPERTIES = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    total_memory=150_110_011_392,
    warp_size=32,
    max_threads_per_block=1024,
    max_threads_per_multi_processor=2048,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=48 * 1024,
    shared_memory_per_block_optin=SHARED_MEMORY_OPTIN_BYTES,
    shared_memory_per_multiprocessor=228 * 1024,
    L2_cache_size=60 * 1024 * 1024,
    is_integrated=False,
    is_multi_gpu_board=False,
)
"""What `torch.cuda.get_device_properties` returns for the device."""

FREE_BYTES = 128 * 1024**3
"""Of the device's memory, as far as anybody who asks may rely on it."""

TRITON_PROPERTIES = {
    "max_shared_mem": SHARED_MEMORY_OPTIN_BYTES,
    "max_num_regs": 65536,
    "multiprocessor_count": 132,
    "warpSize": 32,
    "sm_clock_rate": 1_980_000,
    "mem_clock_rate": 3_201_000,
    "mem_bus_width": 6144,
}
"""What Triton's driver returns from `utils.get_device_properties` (clocks in kHz)."""


class _DeviceGuard:
    """`torch.cuda.device(...)`: there is one device, so entering it changes nothing."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def device_queries() -> dict[str, Callable[..., Any]]:
    """Return stand-ins for the query functions of `torch.cuda`, by name."""
    return {
        "get_device_properties": lambda *_, **__: CUDA_PROPERTIES,
        "get_device_capability": lambda *_, **__: (9, 0),
        "get_device_name": lambda *_, **__: CUDA_PROPERTIES.name,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "set_device": lambda *_, **__: None,
        "synchronize": lambda *_, **__: None,
        "current_stream": lambda *_, **__: fake_streams.Stream(),
        "default_stream": lambda *_, **__: fake_streams.Stream(),
        "Stream": fake_streams.Stream,
        "Event": fake_streams.Event,
        "stream": fake_streams.entered,
        "device": _DeviceGuard,
        "device_of": _DeviceGuard,
        "empty_cache": lambda: None,
        "mem_get_info": lambda *_, **__: (FREE_BYTES, CUDA_PROPERTIES.total_memory),
        "memory_allocated": lambda *_, **__: CUDA_PROPERTIES.total_memory - FREE_BYTES,
        "memory_reserved": lambda *_, **__: CUDA_PROPERTIES.total_memory - FREE_BYTES,
        "is_bf16_supported": lambda *_, **__: True,
        "is_current_stream_capturing": lambda: False,
    }


class CudaMeans(TorchFunctionMode):
    """Reads the device `cuda` in calls of torch as another one.

    Args:
        device: the device that is meant.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Replace device arguments, and `tensor.cuda()` by a move."""
        if func is torch.Tensor.cuda:
            return args[0].to(self._device)
        named = {name: self._meant(value) for name, value in (kwargs or {}).items()}
        meant = [self._meant(value) for value in args]
        if func is torch.device and self._device in (*meant, *named.values()):
            return self._device  # `torch.device("cuda", 0)`, which has an index of its own
        return func(*meant, **named)

    def _meant(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._device if value == "cuda" or value.startswith("cuda:") else value
        if isinstance(value, torch.device) and value.type == "cuda":
            return self._device
        return value


@contextmanager
def replaced(target: Any, values: dict[str, Any]) -> Iterator[None]:
    """Set attributes of `target` for the block and put the former ones back."""
    missing = object()
    former = {name: vars(target).get(name, missing) for name in values}
    for name, value in values.items():
        setattr(target, name, value)
    try:
        yield
    finally:
        for name, value in former.items():
            if value is missing:
                delattr(target, name)
            else:
                setattr(target, name, value)


class TargetDriver:
    """A Triton driver that knows its target and device facts, and can launch nothing.

    Args:
        torch_device: the device on which candidate code creates its tensors.
    """

    def __init__(self, torch_device: str) -> None:
        self._torch_device = torch.device(torch_device)
        self.utils: Any = SimpleNamespace(
            get_device_properties=lambda _device: dict(TRITON_PROPERTIES)
        )

    @staticmethod
    def is_active() -> bool:
        """Return True: this driver is only ever set on purpose."""
        return True

    def get_current_target(self) -> GPUTarget:
        """Return the sm_90 target."""
        return TARGET

    def get_active_torch_device(self) -> torch.device:
        """Return the device for new tensors."""
        return self._torch_device

    def get_current_device(self) -> int:
        """Return the number of the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Accept any device number: there is one device."""

    def get_current_stream(self, device: int | None = None) -> int:
        """Return the default stream."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """Return compute capability 9.0."""
        return (9, 0)

    def get_device_interface(self) -> Any:
        """Return torch's CUDA module, as the real driver does."""
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return a stand-in that runs the function once and times nothing."""
        return run_untimed

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Return a small buffer: there is no cache to empty."""
        return torch.empty(1, dtype=torch.int32, device=self._torch_device)

    def clear_cache(self, cache: Any) -> None:
        """There is no cache to clear."""


def run_untimed(kernel_call: Callable[[], Any], **_: Any) -> list[float]:
    """Run `kernel_call` once and return equal quantiles, so that the first configuration wins."""
    kernel_call()
    return [0.0, 0.0, 0.0]
