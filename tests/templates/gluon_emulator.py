"""Runs a generated Gluon file on the CPU: its kernels as Python functions on emulated hardware.

The file is executed with stand-ins for the modules of Triton and Gluon; `ModelNew` then runs on CPU
tensors, one program of a grid after the other. Layouts are not checked here (the compiler does),
nor is performance. See `gluon_machine` for what is checked beside the numbers.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gluon_language
import numpy as np
import torch
from gluon_hopper import Descriptor, hopper_names
from gluon_machine import Block, enter
from gluon_values import Dtype, Pointer, Tile

_HOST_ARRAYS = {torch.bfloat16: torch.float32, torch.float16: torch.float32}


@dataclass(frozen=True)
class Settings:
    """What the emulated device is like."""

    seed: int = 0
    multiprocessors: int = 1


def run_gluon(
    source: str,
    inputs: Sequence[torch.Tensor],
    *,
    state: Mapping[str, torch.Tensor] | None = None,
    settings: Settings | None = None,
) -> np.ndarray:
    """Return the output of `ModelNew` in `source`, in float64.

    Raises:
        KernelFault: the kernel does what hardware does not forgive.
    """
    with _stand_ins(settings or Settings()):
        module: dict[str, Any] = {"__name__": "generated"}
        exec(compile(source, "generated.py", "exec"), module)  # noqa: S102  our own template's text
        model = module["ModelNew"]()
        for name, tensor in (state or {}).items():
            setattr(model, name, tensor)
        if hasattr(model, "prepare"):
            model.prepare()
        result: torch.Tensor = model(*inputs)
    return result.to(torch.float64).numpy()


class Kernel:
    """A jitted function: called by other kernels, or launched over a grid."""

    def __init__(self, function: Any, settings: Settings) -> None:
        self._function, self._settings = function, settings
        self.__name__ = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*args: Any, **_: Any) -> None:
            tensors: list[tuple[torch.Tensor, np.ndarray]] = []
            values = [_on_device(a, tensors) for a in args]
            for program in range(grid[0]):
                enter(Block(program, grid[0], self._settings.seed + program))
                self._function(*values)
            for tensor, array in tensors:
                tensor.copy_(torch.from_numpy(array).view(tensor.shape))

        return launch


def _on_device(argument: Any, tensors: list[tuple[torch.Tensor, np.ndarray]]) -> Any:
    """Return what a kernel sees of a launch's argument; written back to `tensors` later."""
    if isinstance(argument, torch.Tensor):
        array = _array(argument)
        tensors.append((argument, array))
        return Pointer(array.reshape(-1))
    if isinstance(argument, Descriptor):
        array = _array(argument.base)
        tensors.append((argument.base, array))
        return argument.bound_to(array)
    return Tile(argument)


def _array(tensor: torch.Tensor) -> np.ndarray:
    plain = tensor.detach().to(_HOST_ARRAYS.get(tensor.dtype, tensor.dtype))
    return np.array(plain.numpy())


def _module(name: str, names: Mapping[str, Any]) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__dict__.update(names)
    return module


@contextmanager
def _stand_ins(settings: Settings) -> Iterator[None]:
    """Put emulated modules in the place of Triton's, and a device in that of CUDA's."""

    def jit(function: Any) -> Kernel:
        return Kernel(function, settings)

    language = _module("language", {n: getattr(gluon_language, n) for n in gluon_language.NAMES})
    libdevice = _module("libdevice", gluon_language.LIBDEVICE)
    gluon = _module("gluon", {"jit": jit, "language": language})
    hopper = _module("hopper", hopper_names())
    triton = _module("triton", {"jit": jit, "cdiv": lambda a, b: -(-a // b), "language": language})
    root, inner = "triton.experimental.gluon", "triton.experimental.gluon.language"
    modules = {
        "triton": triton,
        "triton.language": language,
        "triton.language.extra": _module("extra", {"libdevice": libdevice}),
        "triton.experimental": _module("experimental", {"gluon": gluon}),
        root: gluon,
        inner: language,
        f"{inner}.extra": _module("extra", {"libdevice": libdevice}),
        f"{inner}.nvidia": _module("nvidia", {}),
        f"{inner}.nvidia.hopper": hopper,
        f"{root}.nvidia": _module("nvidia", {}),
        f"{root}.nvidia.hopper": _module("hopper", {"TensorDescriptor": Descriptor}),
    }
    former = {name: sys.modules.get(name) for name in modules}
    properties = torch.cuda.get_device_properties
    count = types.SimpleNamespace(multi_processor_count=settings.multiprocessors)
    sys.modules.update(modules)
    torch.cuda.get_device_properties = lambda *_: count  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.cuda.get_device_properties = properties
        for name, module in former.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def dtype_of(tensor: torch.Tensor) -> Dtype:
    """Return the device dtype of a tensor."""
    return gluon_language.DTYPES[str(tensor.dtype).removeprefix("torch.")]
