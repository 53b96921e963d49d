"""CUDA tensors without a GPU: shapes, strides, dtypes and addresses, but no data.

Inside `fake_cuda()` every tensor that code creates is a torch `FakeTensor`, `device="cuda"` works
also on a CPU-only torch, and `data_ptr()` gives an address with the alignment that torch's CUDA
allocator would give, so that Triton specialises a launch as it will on the GPU. What needs data
raises (see `NEEDS_DATA`): whether to branch on a value is not decidable here.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch._subclasses import fake_tensor as _fake

from hotloop.worker.fake_device import CudaMeans, device_queries, replaced

NEEDS_DATA: tuple[type[Exception], ...] = (
    _fake.DataDependentOutputException,
    _fake.DynamicOutputShapeException,
    _fake.UnsupportedFakeTensorException,
    _fake.UnsupportedOperatorException,
)
"""Raised by operations whose result depends on the contents of a tensor, or on a real device."""

ALLOCATION_ALIGN_BYTES = 512
"""The caching allocator rounds every block to this many bytes (torch, c10/cuda, kMinBlockSize)."""

_FIRST_ADDRESS = 0x7F00_0000_0000
_DEVICE = torch.device("cuda", 0)

# c10's table of device guards and two positions in it (c10/core/DeviceType.h).
_GUARD_TABLE = "_ZN3c104impl26device_guard_impl_registryE"
_CUDA_INDEX, _META_INDEX = 1, 14


@contextmanager
def fake_cuda() -> Iterator[None]:
    """Turn tensor creation into fake CUDA tensor creation for the block, without gradients."""
    _install_device_guard()
    addresses = _Addresses()
    queries = {**device_queries(), "is_available": lambda: True}
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(replaced(_fake, {"init_gpu_context": lambda device: None}))
        mode_patches = {"avoid_device_init": property(lambda self: True)}
        stack.enter_context(replaced(_fake.FakeTensorMode, mode_patches))
        stack.enter_context(replaced(_fake.FakeTensor, {"data_ptr": addresses.of}))
        stack.enter_context(replaced(torch.Tensor, {"record_stream": lambda tensor, stream: None}))
        stack.enter_context(replaced(torch.nn.Module, {"_apply": _make_apply()}))
        stack.enter_context(replaced(torch.cuda, queries))
        stack.enter_context(_fake.FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(_FakeCudaDevice())
        yield


def fake_tensor(spec: Mapping[str, Any]) -> torch.Tensor:
    """Make one tensor from its description; call inside `fake_cuda()`.

    Args:
        spec: `shape`; `dtype`, a torch name such as `bfloat16`; optional `strides` in elements
            (default contiguous) and `offset`, the address modulo the allocator's alignment, in
            bytes.
    """
    shape, dtype = tuple(spec["shape"]), getattr(torch, spec["dtype"])
    strides = spec.get("strides")
    if strides is None:
        tensor = torch.empty(shape, dtype=dtype, device=_DEVICE)
    else:
        tensor = torch.empty_strided(shape, tuple(strides), dtype=dtype, device=_DEVICE)
    offset = int(spec.get("offset", 0)) % ALLOCATION_ALIGN_BYTES
    if not offset:
        return tensor
    elements, odd = divmod(offset, dtype.itemsize)
    if odd:
        raise ValueError(f"expected an offset in whole {dtype} elements, got {offset} bytes")
    span = 1 + sum((n - 1) * s for n, s in zip(shape, tensor.stride(), strict=True))
    whole = torch.empty(elements + max(span, 1), dtype=dtype, device=_DEVICE)
    return torch.as_strided(whole, shape, tensor.stride(), elements)


class _Addresses:
    """Gives each storage an aligned address range of its own."""

    def __init__(self) -> None:
        self._next = _FIRST_ADDRESS
        self._bases: dict[int, int] = {}
        self._storages: list[Any] = []  # kept alive, so that no address is given twice
        self.of = self._make_method()

    def _make_method(self) -> Callable[[torch.Tensor], int]:
        def data_ptr(tensor: torch.Tensor) -> int:
            storage = tensor.untyped_storage()
            if storage.nbytes() == 0:
                return 0
            return self._base(storage) + tensor.storage_offset() * tensor.element_size()

        return data_ptr

    def _base(self, storage: Any) -> int:
        base = self._bases.get(storage._cdata)
        if base is None:
            base = self._bases[storage._cdata] = self._next
            self._storages.append(storage)
            blocks = -(-storage.nbytes() // ALLOCATION_ALIGN_BYTES) + 1
            self._next += blocks * ALLOCATION_ALIGN_BYTES
        return base


class _FakeCudaDevice(CudaMeans):
    """Reads `cuda` as `cuda:0`, so that torch never asks a driver for the current device."""

    def __init__(self) -> None:
        super().__init__(_DEVICE)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__module__", "") == "torch.nn.init":
            return args[0] if args else (kwargs or {})["tensor"]  # there are no values to set
        return super().__torch_function__(func, types, args, kwargs)


def _make_apply() -> Callable[..., torch.nn.Module]:
    """Return a `Module._apply` that replaces parameters; torch's swaps fake ones, and fails."""
    made: dict[int, tuple[Any, Any]] = {}  # by id of the old tensor, which is kept alive

    def apply(self: torch.nn.Module, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        if recurse:
            for child in self.children():
                child._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in made:
                moved = torch.nn.Parameter(fn(parameter), requires_grad=parameter.requires_grad)
                made[id(parameter)] = (parameter, moved)
            self._parameters[name] = made[id(parameter)][1]
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    return apply


def _install_device_guard() -> None:
    """Give a CPU-only torch a device guard for CUDA that does nothing.

    Many C++ operators switch to a tensor's device before they run, also for a fake tensor, and
    abort when no guard is registered for its type. A CUDA build without a GPU gets a guard that
    does nothing from torch itself; a CPU build has none. The meta device's guard does nothing
    either, so its entry is copied into CUDA's empty one. Permanent, and without effect on real
    tensors: a CPU build has no CUDA ones.
    """
    if torch.version.cuda is not None or torch.version.hip is not None:
        return
    library = ctypes.CDLL(os.fspath(Path(torch.__file__).parent / "lib" / "libc10.so"))
    table = (ctypes.c_void_p * (_META_INDEX + 1)).in_dll(library, _GUARD_TABLE)
    if not table[_CUDA_INDEX]:
        table[_CUDA_INDEX] = table[_META_INDEX]
