"""Memory in Triton's interpreter: bounds of the arguments, 16-bit atomics, NaN borders.

The stock interpreter reads and writes whatever address a kernel computes. Here each access is held
against the storages of the launch's arguments, so that a missing mask is an error with the name of
the argument, not garbage or a dead process. A kernel that makes pointers from integers is not held
to that: their memory is unknown here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from triton._C.libtriton import interpreter as _memory
from triton._C.libtriton import ir as _ir
from triton.runtime import interpreter as _stock

from hotloop.worker.faults import OutOfBoundsError
from hotloop.worker.interpreter_formats import BF16, SOFT_FORMATS, Array
from hotloop.worker.interpreter_handles import Handle, make_handle, numbers_of, scalar_name


@dataclass(frozen=True, slots=True)
class Region:
    """The storage of one argument."""

    name: str
    start: int
    """Address of the first byte."""
    end: int
    """Address past the last byte."""


_DESCRIPTOR_REDUCTIONS: dict[str, Any] = {
    "ADD": np.add,
    "MIN": np.fmin,
    "MAX": np.fmax,
    "AND": np.bitwise_and,
    "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}


class MemoryBuilder(_stock.InterpreterBuilder):
    """Triton's interpreter builder with checked accesses and complete atomics."""

    def __init__(self) -> None:
        super().__init__()
        self.grid_idx: tuple[int, int, int] | None = None
        self._regions: list[Region] = []

    def set_regions(self, regions: list[Region]) -> None:
        """Say which memory the next launch may touch; an empty list means any."""
        self._regions = sorted(regions, key=lambda region: region.start)

    def _check(self, access: str, pointers: Handle, mask: Handle) -> None:
        if not self._regions:
            return
        inside = np.broadcast_to(np.asarray(mask.data, dtype=np.bool_), pointers.data.shape)
        addresses = pointers.data[inside]
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        starts = np.array([region.start for region in self._regions], dtype=np.uint64)
        ends = np.array([region.end for region in self._regions], dtype=np.uint64)
        at = np.searchsorted(starts, addresses, side="right") - 1
        wrong = (at < 0) | (addresses + np.uint64(size) > ends[np.maximum(at, 0)])
        if wrong.any():
            self._refuse(access, int(addresses[wrong][0]), size, int(wrong.sum()))

    def _refuse(self, access: str, address: int, size: int, count: int) -> None:
        nearest = min(self._regions, key=lambda r: max(r.start - address, address - r.end + 1, 0))
        if address < nearest.start:
            where = f"{nearest.start - address} bytes before the start"
        else:
            where = f"{address - nearest.start} bytes from the start"
        raise OutOfBoundsError(
            f"{access} out of bounds in program {self.grid_idx}: {size} bytes, {where} of the "
            f"memory of argument {nearest.name!r}, which has {nearest.end - nearest.start} bytes; "
            f"{count} elements of this access are outside; mask them"
        )

    def create_int_to_ptr(self, src: Handle, dst_type: Any) -> Handle:
        """Make a pointer from an integer; from here on any address may be right."""
        self._regions = []
        return self.create_bitcast(src, dst_type)

    def create_masked_load(self, ptrs: Handle, mask: Handle, *rest: Any, **named: Any) -> Handle:
        """Load where the mask is set."""
        self._check("load", ptrs, mask)
        return super().create_masked_load(ptrs, mask, *rest, **named)

    def create_masked_store(
        self, ptrs: Handle, value: Handle, mask: Handle, *rest: Any, **named: Any
    ) -> Any:
        """Store where the mask is set."""
        self._check("store", ptrs, mask)
        return super().create_masked_store(ptrs, value, mask, *rest, **named)

    def create_atomic_rmw(
        self, kind: Any, ptr: Handle, val: Handle, mask: Handle, *rest: Any
    ) -> Handle:
        """Read, modify, write; bfloat16 and float16 additions are done here, one by one."""
        self._check("atomic", ptr, mask)
        name = scalar_name(val)
        if kind != _ir.ATOMIC_OP.FADD or name not in (BF16, "fp16"):
            return super().create_atomic_rmw(kind, ptr, val, mask, *rest)
        shape = val.data.shape
        pointers, masks = (np.broadcast_to(h.data, shape).reshape(-1) for h in (ptr, mask))
        addends = val.data.reshape(-1)
        old = np.zeros_like(addends)
        for i in np.flatnonzero(masks):
            old[i] = _update(pointers[i], addends[i : i + 1], val.dtype, np.add)
        return _stock.TensorHandle(old.reshape(shape), val.dtype.scalar)

    def create_descriptor_load(self, desc: Any, indices: list[Handle], *rest: Any) -> Handle:
        """Load a block; a NaN border of a bit-pattern format is its NaN pattern."""
        dtype = desc.base.dtype.element_ty
        if desc.padding != _ir.PADDING_OPTION.PAD_NAN or str(dtype) not in SOFT_FORMATS:
            return super().create_descriptor_load(desc, indices, *rest)
        pointers, mask = desc.materialize_pointers(indices)
        inside = getattr(mask, "data", mask)  # a plain array up to Triton 3.6, then a handle
        nan = make_handle(np.full(inside.shape, np.nan, dtype=np.float32), dtype).data
        loaded = _memory.load(pointers.data, np.asarray(inside), nan, nan.dtype)
        return _stock.TensorHandle(loaded, dtype)

    def create_descriptor_reduce(
        self, kind: Any, desc: Any, value: Handle, indices: list[Handle]
    ) -> None:
        """Combine a block into memory (`desc.atomic_add` and its kin)."""
        dtype = desc.base.dtype.element_ty
        pointers, mask = desc.materialize_pointers(indices)
        inside = np.asarray(getattr(mask, "data", mask)).reshape(-1)
        addresses, operands = pointers.data.reshape(-1), value.data.reshape(-1)
        op = _DESCRIPTOR_REDUCTIONS[str(kind.name)]
        for i in np.flatnonzero(inside):
            _update(addresses[i], operands[i : i + 1], dtype, op)


def _update(address: Any, operand: Array, dtype: Any, op: Any) -> Any:
    """Apply `op` to one element of memory and return what was there."""
    pointer, mask = np.array([address], dtype=np.uint64), np.ones(1, dtype=np.bool_)
    before = _memory.load(pointer, mask, np.zeros_like(operand), operand.dtype)
    stored, added = (_stock.TensorHandle(data, dtype.scalar) for data in (before, operand))
    after = make_handle(op(numbers_of(stored), numbers_of(added)), dtype.scalar)
    _memory.store(pointer, after.data, mask)
    return before[0]
