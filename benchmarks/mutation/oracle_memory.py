"""The oracle's interpreter: Triton's stock one, with its memory accesses watched.

An access outside the tensors of a launch is noted. Such a load gives a number that depends on the
address alone, as a neighbour's memory would; such a store is left out, so that nothing breaks.
Products in TF32 round their operands, which the stock interpreter does not do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter as stock

Array = Any


class Watch:
    """The memory of the launch under way, and how many accesses were outside of it."""

    def __init__(self) -> None:
        self.starts = np.zeros(0, dtype=np.uint64)
        self.ends = np.zeros(0, dtype=np.uint64)
        self.loads = 0
        self.stores = 0

    def allow(self, tensors: list[torch.Tensor]) -> None:
        """Hold the next accesses against these tensors' storages."""
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
        pairs = sorted(storages.items())
        self.starts = np.array([start for start, _ in pairs], dtype=np.uint64)
        self.ends = np.array([start + size for start, size in pairs], dtype=np.uint64)

    def inside(self, addresses: Array, size: int) -> Array:
        """Return for each address whether `size` bytes from there belong to a tensor."""
        if not len(self.starts):
            return np.zeros(addresses.shape, dtype=np.bool_)
        at = np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1
        known = self.ends[np.maximum(at, 0)]
        return (at >= 0) & (addresses + np.uint64(size) <= known)


WATCH = Watch()


class WatchedBuilder(stock.InterpreterBuilder):  # type: ignore[misc]  # triton has no types
    """Triton's interpreter with watched accesses."""

    def create_masked_load(self, ptrs: Any, mask: Any, other: Any, *rest: Any) -> Any:
        """Load where the mask is set and memory is there."""
        wanted = np.broadcast_to(np.asarray(mask.data, dtype=np.bool_), ptrs.data.shape)
        outside = wanted & ~WATCH.inside(ptrs.data, _bytes(ptrs))
        if not outside.any():
            return super().create_masked_load(ptrs, mask, other, *rest)
        WATCH.loads += int(outside.sum())
        kept = stock.TensorHandle(wanted & ~outside, mask.dtype)
        loaded = super().create_masked_load(ptrs, kept, other, *rest)
        foreign = (ptrs.data.astype(np.int64) // 4 * 2654435761 % 1000) / 250.0 - 2.0
        loaded.data[outside] = foreign[outside].astype(loaded.data.dtype)
        return loaded

    def create_masked_store(self, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        """Store where the mask is set and memory is there."""
        wanted = np.broadcast_to(np.asarray(mask.data, dtype=np.bool_), ptrs.data.shape)
        outside = wanted & ~WATCH.inside(ptrs.data, _bytes(ptrs))
        WATCH.stores += int(outside.sum())
        kept = stock.TensorHandle(wanted & ~outside, mask.dtype)
        return super().create_masked_store(ptrs, value, kept, *rest)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        """Convert; whole numbers to bfloat16 by way of float32, which the stock cast gets wrong."""
        from_float = np.issubdtype(src.data.dtype, np.floating) or src.dtype.scalar.is_bf16()
        if dst_type.scalar.is_bf16() and not from_float:
            src = super().cast_impl(src, tl.float32)
        return super().cast_impl(src, dst_type)

    def create_dot(self, a: Any, b: Any, d: Any, precision: Any, *rest: Any) -> Any:
        """Multiply; in TF32 only where that is asked for."""
        if str(precision).rpartition(".")[2] == "TF32" and a.data.dtype == np.float32:
            a, b = (stock.TensorHandle(_tf32(h.data), h.dtype) for h in (a, b))
        return super().create_dot(a, b, d, precision, *rest)


def install() -> None:
    """Watch every launch of this process, which must have begun with `TRITON_INTERPRET=1`."""
    stock.interpreter_builder = WatchedBuilder()
    stock.interpreter_semantic = stock.TritonSemantic(stock.interpreter_builder)
    plain = stock.GridExecutor._init_args_hst

    def watched(self: Any, args: Any, kwargs: Any) -> Any:
        args_host, kwargs_host = plain(self, args, kwargs)
        given = [*args_host, *kwargs_host.values()]
        WATCH.allow([a for a in given if isinstance(a, torch.Tensor)])
        return args_host, kwargs_host

    stock.GridExecutor._init_args_hst = watched


def _bytes(pointers: Any) -> int:
    return max(1, int(pointers.get_element_ty().primitive_bitwidth) // 8)


def _tf32(values: Array) -> Array:
    bits = values.view(np.uint32) + np.uint32(0x1000)  # to the nearest, of 13 bits fewer
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)
