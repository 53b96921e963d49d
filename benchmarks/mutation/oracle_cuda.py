"""The oracle's launcher of CUDA C++ sources: compile, bind the launch description, launch.

The compiler and the reader of launch descriptions are the product's, for they define what a source
means; buffers, launches and what is looked at afterwards are the oracle's own. It needs a GPU.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hotloop.worker import cudriver as cu
from hotloop.worker.cuda_compiler import compile_cubin
from hotloop.worker.launch_description import parse
from hotloop.worker.launch_plan import BoundLaunch, bind
from hotloop.worker.symbol_scan import refuse_managed

PLAIN_SHARED_BYTES = 48 * 1024
"""More has to be asked for."""
SCALARS: dict[str, Any] = {
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


class CudaKernel:
    """A `.cu` source with a launch description."""

    def __init__(self, source: str) -> None:
        """Compile; the module is loaded with the first run.

        Raises:
            LaunchDescriptionError: the description is malformed.
            CompileFailedError: the compiler refused the source.
        """
        self._description = parse(source)
        self._code = compile_cubin(source, "mutant.cu").cubin
        refuse_managed(self._code)
        self._module: ctypes.c_void_p | None = None

    def run(
        self, init_args: Sequence[Any], inputs: list[Any], state: dict[str, Tensor]
    ) -> list[Tensor]:
        """Launch all kernels on the current stream and wait for them.

        Raises:
            LaunchDescriptionError: the inputs do not fit.
            CudaDriverError: a launch was refused.
        """
        del init_args  # a `.cu` source has its settings in its text
        given = [tuple(v.shape) if isinstance(v, Tensor) else v for v in inputs]
        plan = bind(self._description, given, {n: tuple(v.shape) for n, v in state.items()})
        buffers = {
            name: _filled(shape, dtype)
            for name, (shape, dtype) in {**plan.outputs, **plan.scratch}.items()
        }
        named = {**dict(zip(self._description.inputs, inputs, strict=True)), **state, **buffers}
        torch.cuda.current_stream().synchronize()  # torch has made the context current
        for launch in plan.launches:
            self._launch(launch, named)
        torch.cuda.synchronize()
        return [buffers[name] for name in plan.outputs]

    def _launch(self, launch: BoundLaunch, named: dict[str, Any]) -> None:
        if self._module is None:
            self._module = ctypes.c_void_p()
            cu.call("cuModuleLoadData", ctypes.byref(self._module), self._code)
        function = ctypes.c_void_p()
        cu.call("cuModuleGetFunction", ctypes.byref(function), self._module, launch.name.encode())
        if launch.shared_bytes > PLAIN_SHARED_BYTES:
            cu.call("cuFuncSetAttribute", function, cu.FUNC_MAX_DYNAMIC_SHARED, launch.shared_bytes)
        values = [
            ctypes.c_uint64(named[value].data_ptr()) if kind == "buffer" else SCALARS[kind](value)
            for kind, value in launch.args
        ]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        cu.call(
            "cuLaunchKernel", function, *launch.grid, *launch.block, launch.shared_bytes, stream,
            pointers, None,
        )  # fmt: skip


def _filled(shape: tuple[int, ...], dtype: str) -> Tensor:
    """Return a buffer that nobody wrote: NaN, or a large number where there is none."""
    kind = getattr(torch, dtype)
    if kind.is_floating_point:
        return torch.full(shape, math.nan, dtype=kind, device="cuda")
    largest = 1 if kind is torch.bool else torch.iinfo(kind).max
    return torch.full(shape, largest, dtype=kind, device="cuda")
