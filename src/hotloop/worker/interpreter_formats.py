"""Number formats that numpy has not: bfloat16, the fp8 family and TF32, for Triton's interpreter.

The interpreter keeps a bfloat16 value as a ``uint16`` bit pattern and an fp8 value as ``uint8``.
Arithmetic on those integers is nonsense, so `decode` turns a bit pattern into ``float32`` (exact
for every format here) and `encode` rounds back once. One decode, one operation and one encode is
what the GPU does for a single bfloat16 instruction.

Formats are named as Triton's dtypes print themselves (``bf16``, ``fp8e4nv``, ...). No Triton
import.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]

BF16 = "bf16"

# Triton's fp8 names and the torch dtypes of the same encoding. `fp8e4b15` has no torch twin.
_TORCH_FP8: dict[str, torch.dtype] = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}

SOFT_FORMATS = frozenset({BF16, *_TORCH_FP8})
"""Formats whose numpy storage is an integer bit pattern."""

_F32_EXPONENT_MASK = np.uint32(0x7F800000)
_TF32_DROPPED_BITS = 13  # float32 has 23 mantissa bits, TF32 keeps 10


def decode(bits: Array, name: str) -> Array:
    """Return the float32 values of the bit patterns `bits` in format `name`. Exact."""
    if name == BF16:
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    raw = torch.from_numpy(np.ascontiguousarray(bits).view(np.uint8).copy())
    return raw.view(_TORCH_FP8[name]).to(torch.float32).numpy()


def encode(values: Array, name: str, *, toward_zero: bool = False) -> Array:
    """Round float `values` to format `name` and return the bit patterns.

    Rounds to nearest, ties to even, unless `toward_zero`. A float64 value that is not a float32 is
    first rounded to odd, so that the two roundings give the same result as one. fp8 saturates at
    the largest finite value as `cvt.rn.satfinite` does (PTX ISA, instruction `cvt`).
    """
    narrow = values if values.dtype == np.float32 else _to_float32_odd(values)
    if name == BF16:
        return _bf16_bits(narrow, toward_zero=toward_zero)
    return _fp8_bits(narrow, name, toward_zero=toward_zero)


def round_to_tf32(values: Array) -> Array:
    """Round float32 `values` to TF32's 10 mantissa bits, ties away from zero.

    This is the rounding of PTX `cvt.rna.tf32.f32`. Infinities and NaN stay as they are.
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    half = np.uint32(1 << (_TF32_DROPPED_BITS - 1))
    keep = np.uint32(0xFFFFFFFF << _TF32_DROPPED_BITS & 0xFFFFFFFF)
    special = (bits & _F32_EXPONENT_MASK) == _F32_EXPONENT_MASK
    return np.where(special, bits, (bits + half) & keep).view(np.float32)


def split_bf16(values: Array, terms: int) -> list[Array]:
    """Split float32 `values` into `terms` bfloat16 parts (as float32) that sum close to them."""
    parts = []
    rest = values
    for _ in range(terms):
        part = decode(encode(rest, BF16), BF16)
        parts.append(part)
        rest = rest - part
    return parts


def to_float16(values: Array, *, toward_zero: bool = False) -> Array:
    """Round `values` to float16, to nearest even or toward zero."""
    rounded = values.astype(np.float16)
    if not toward_zero:
        return rounded
    too_large = np.abs(rounded.astype(np.float64)) > np.abs(values.astype(np.float64))
    return np.where(too_large, np.nextafter(rounded, np.float16(0)), rounded)


def _bf16_bits(values: Array, *, toward_zero: bool) -> Array:
    bits = np.ascontiguousarray(values).view(np.uint32).reshape(values.shape)
    upper = bits >> np.uint32(16)
    if not toward_zero:
        # Adding 0x7fff plus the lowest kept bit carries into bit 16 exactly when RNE rounds up.
        upper = (bits + np.uint32(0x7FFF) + (upper & np.uint32(1))) >> np.uint32(16)
    quiet_nan = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), quiet_nan, upper).astype(np.uint16)


def _fp8_bits(values: Array, name: str, *, toward_zero: bool) -> Array:
    dtype = _TORCH_FP8[name]
    largest = float(torch.finfo(dtype).max)
    clamped = np.clip(values, -largest, largest)  # NaN stays NaN
    coded = torch.from_numpy(np.ascontiguousarray(clamped, dtype=np.float32)).to(dtype)
    bits = coded.view(torch.uint8).numpy().copy().reshape(values.shape)
    if toward_zero:
        # Within one sign, fp8 bit patterns are ordered by magnitude: one less is one step inwards.
        too_large = np.abs(decode(bits, name)) > np.abs(clamped)
        bits = np.where(too_large, bits - np.uint8(1), bits).astype(np.uint8)
    return bits


def _to_float32_odd(values: Array) -> Array:
    """Convert to float32, rounding inexact values to the neighbour with an odd last bit.

    A later rounding to fewer bits then equals a single rounding of the original (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
    """
    wide = values.astype(np.float64)
    nearest = wide.astype(np.float32)
    back = nearest.astype(np.float64)
    inexact = (back != wide) & np.isfinite(wide) & np.isfinite(nearest)
    bits = nearest.view(np.uint32).reshape(values.shape)
    # Truncate toward zero (one step back where `nearest` went outwards), then set the last bit.
    truncated = np.where(np.abs(back) > np.abs(wide), bits - np.uint32(1), bits)
    return np.where(inexact, truncated | np.uint32(1), bits).astype(np.uint32).view(np.float32)
