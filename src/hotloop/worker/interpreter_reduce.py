"""Reductions and scans for Triton's interpreter, by any combine function and in any format.

The stock interpreter reduces sums and extrema with numpy on the raw storage, which is wrong for
bit-pattern formats and for NaN, and calls any other combine function once per element. Here the
combine function itself is applied to whole slices: a tree for a reduction (the GPU's order, up to
its layout), one slice after the other for a scan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as _stock

from hotloop.worker.interpreter_formats import Array

Parts = list[Array]


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: bool = False, **_: Any) -> Any:
    """Stand in for `tl.reduce`: combine along `axis`, or over everything when it is None."""
    tensors = input if isinstance(input, tuple) else (input,)
    dimension, keep = _plain(axis), bool(_plain(keep_dims))
    parts = [tensor.handle.data for tensor in tensors]
    rank = parts[0].ndim
    if dimension is None:
        parts, dimension = [part.reshape(-1) for part in parts], 0
    elif not -rank <= dimension < rank:
        raise ValueError(f"reduction axis {dimension} does not exist in a block of rank {rank}")
    dtypes = [tensor.dtype for tensor in tensors]
    reduced = _tree([np.moveaxis(part, dimension, 0) for part in parts], dtypes, combine_fn)
    if keep:
        everything = (1,) * rank
        reduced = [
            part.reshape(everything) if _plain(axis) is None else np.expand_dims(part, dimension)
            for part in reduced
        ]
    results = tuple(_tensor(part, dtype) for part, dtype in zip(reduced, dtypes, strict=True))
    return results if isinstance(input, tuple) else results[0]


def associative_scan(
    input: Any, axis: Any, combine_fn: Any, reverse: bool = False, **_: Any
) -> Any:
    """Stand in for `tl.associative_scan`: running combination along `axis`."""
    tensors = input if isinstance(input, tuple) else (input,)
    dimension, backwards = _plain(axis), bool(_plain(reverse))
    dtypes = [tensor.dtype for tensor in tensors]
    slices = [np.moveaxis(tensor.handle.data, dimension, 0) for tensor in tensors]
    if backwards:
        slices = [part[::-1] for part in slices]
    running = [[part[0]] for part in slices]
    for i in range(1, len(slices[0])):
        last = [history[-1] for history in running]
        combined = _combine(last, [part[i] for part in slices], dtypes, combine_fn)
        for history, value in zip(running, combined, strict=True):
            history.append(value)
    scanned = [np.stack(history) for history in running]
    if backwards:
        scanned = [part[::-1] for part in scanned]
    results = tuple(
        _tensor(np.ascontiguousarray(np.moveaxis(part, 0, dimension)), dtype)
        for part, dtype in zip(scanned, dtypes, strict=True)
    )
    return results if isinstance(input, tuple) else results[0]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def _tensor(data: Array, dtype: Any) -> Any:
    """Wrap `data`: a block, or a scalar where no dimension is left."""
    if data.ndim == 0:
        return tl.core.tensor(_stock.TensorHandle(data.reshape(1), dtype), dtype)
    block = tl.block_type(dtype, list(data.shape))
    return tl.core.tensor(_stock.TensorHandle(data, dtype), block)


def _combine(lhs: Parts, rhs: Parts, dtypes: list[Any], combine_fn: Any) -> Parts:
    operands = [_tensor(part, dtype) for part, dtype in zip(lhs + rhs, dtypes * 2, strict=True)]
    result = combine_fn(*operands)
    results = result if isinstance(result, tuple) else (result,)
    combined = []
    for value, part, dtype in zip(results, lhs, dtypes, strict=True):
        cast = _stock.interpreter_semantic.cast(_stock.interpreter_semantic.to_tensor(value), dtype)
        combined.append(np.broadcast_to(cast.handle.data, part.shape or (1,)).reshape(part.shape))
    return combined


def _tree(parts: Parts, dtypes: list[Any], combine_fn: Any) -> Parts:
    """Combine along the first axis in halves; Triton's block sizes are powers of two."""
    while (length := len(parts[0])) > 1:
        half = length // 2
        # Neighbours, not halves: keeps the order, which a combine need not let one change.
        left = [part[0 : 2 * half : 2] for part in parts]
        right = [part[1 : 2 * half : 2] for part in parts]
        combined = _combine(left, right, dtypes, combine_fn)
        tail = [part[2 * half :] for part in parts]
        parts = [np.concatenate(pair) for pair in zip(combined, tail, strict=True)]
    return [part[0] for part in parts]
