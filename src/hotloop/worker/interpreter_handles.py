"""Between Triton's interpreter handles and numbers: the only way in and out for arithmetic.

A handle is numpy storage with a Triton scalar type; the storage of bfloat16 and fp8 is a bit
pattern (see `interpreter_formats.py`). `numbers_of` decodes, `make_handle` rounds and encodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime import interpreter as _stock

from hotloop.worker.interpreter_formats import SOFT_FORMATS, Array, decode, encode, to_float16

Handle = Any  # triton.runtime.interpreter.TensorHandle: .data (numpy), .dtype (Triton scalar type)


def scalar_name(handle: Handle) -> str:
    """Return the name of the handle's scalar type, as Triton prints it."""
    return str(handle.dtype.scalar)


def numbers_of(handle: Handle) -> Array:
    """Return the handle's numbers: float32 for a bit-pattern format, else its own array."""
    name = scalar_name(handle)
    data: Array = handle.data
    if name in SOFT_FORMATS and data.dtype != np.bool_:
        return decode(data, name)
    return data


def make_handle(values: Array, dtype: Any, *, toward_zero: bool = False) -> Handle:
    """Store `values` as Triton scalar type `dtype`, rounding once."""
    name = str(dtype)
    if name in SOFT_FORMATS:
        return _stock.TensorHandle(encode(values, name, toward_zero=toward_zero), dtype)
    target = _stock._get_np_dtype(dtype)
    if values.dtype == target:
        return _stock.TensorHandle(values, dtype)
    if name == "fp16":
        return _stock.TensorHandle(to_float16(values, toward_zero=toward_zero), dtype)
    if np.issubdtype(values.dtype, np.floating) and np.issubdtype(target, np.integer):
        return _stock.TensorHandle(_float_to_int(values, target), dtype)
    return _stock.TensorHandle(values.astype(target), dtype)


def _float_to_int(values: Array, target: np.dtype[Any]) -> Array:
    """Truncate as PTX `cvt.rzi` does: saturate at the limits of the type, NaN becomes 0."""
    width = np.dtype(f"{target.kind}{max(4, target.itemsize)}")  # narrow types go through 32 bits
    limits = np.iinfo(width)
    wide = np.trunc(values.astype(np.float64))
    result = np.where(np.isnan(wide), 0.0, wide)
    inside = np.clip(result, float(limits.min), np.nextafter(float(limits.max) + 1.0, 0.0))
    whole = inside.astype(width)
    whole = np.where(result >= float(limits.max), limits.max, whole)
    return whole.astype(target)
