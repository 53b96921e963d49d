"""Values of emulated kernels: tiles as numpy arrays with a device's arithmetic, and pointers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np


class Dtype:
    """A device dtype: the numpy type that holds it and how values are rounded to it."""

    def __init__(self, name: str, holder: type, bits: int) -> None:
        self.name, self.holder, self.bits = name, holder, bits

    def rounded(self, array: np.ndarray) -> np.ndarray:
        """Return `array` as this dtype holds it, to nearest even."""
        if self.name == "bfloat16":
            word = array.astype(np.float32).view(np.uint32)
            kept = (word + 0x7FFF + ((word >> 16) & 1)) & np.uint32(0xFFFF0000)
            return np.where(np.isfinite(array), kept.view(np.float32), array).astype(np.float32)
        if self.name == "float16":
            return array.astype(np.float16).astype(np.float32)
        return array.astype(self.holder)


DTYPES = {
    "float64": Dtype("float64", np.float64, 64),
    "float32": Dtype("float32", np.float32, 32),
    "float16": Dtype("float16", np.float32, 16),
    "bfloat16": Dtype("bfloat16", np.float32, 16),
    "int64": Dtype("int64", np.int64, 64),
    "int32": Dtype("int32", np.int32, 32),
    "int16": Dtype("int16", np.int16, 16),
    "int8": Dtype("int8", np.int8, 8),
    "uint8": Dtype("uint8", np.uint8, 8),
    "int1": Dtype("int1", np.bool_, 8),
}


def raw(value: Any) -> Any:
    """Return the array of a tile, or the number itself."""
    if isinstance(value, Tile):
        return value.array
    if not isinstance(value, int | float | bool | np.ndarray | np.generic):
        raise TypeError(f"expected a tile or a number, got {type(value).__name__}")
    return value


def _narrow(array: Any) -> np.ndarray:
    array = np.asarray(array)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _truncating(a: Any, b: Any) -> Any:
    """Divide integers as the device does: toward zero."""
    a, b = np.asarray(a), np.asarray(b)
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def _operator(function: Callable[[Any, Any], Any], *, swapped: bool = False) -> Any:
    def method(self: Tile, other: Any) -> Any:
        if isinstance(other, Pointer):
            return NotImplemented
        pair = (raw(other), self.array) if swapped else (self.array, raw(other))
        return Tile(_narrow(function(*pair)))

    return method


class Tile:
    """A tensor or a scalar in registers."""

    __array_ufunc__ = None

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    def __getitem__(self, key: Any) -> Tile:
        return Tile(self.array[key])

    def __bool__(self) -> bool:
        return bool(self.array)

    def __index__(self) -> int:
        return int(self.array)

    def __neg__(self) -> Tile:
        return Tile(-self.array)

    def __invert__(self) -> Tile:
        return Tile(~self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements of each dimension."""
        return self.array.shape

    @property
    def type(self) -> SimpleNamespace:
        """What the kernel may ask of the type; layouts are not emulated."""
        return SimpleNamespace(layout="layout")

    def reshape(self, shape: Sequence[int]) -> Tile:
        """Return the same values in another shape."""
        return Tile(self.array.reshape([int(n) for n in shape]))

    def to(self, dtype: Dtype) -> Tile:
        """Convert."""
        return Tile(dtype.rounded(self.array))

    __add__, __radd__ = _operator(operator.add), _operator(operator.add, swapped=True)
    __sub__, __rsub__ = _operator(operator.sub), _operator(operator.sub, swapped=True)
    __mul__, __rmul__ = _operator(operator.mul), _operator(operator.mul, swapped=True)
    __truediv__ = _operator(np.true_divide)
    __rtruediv__ = _operator(np.true_divide, swapped=True)
    __floordiv__ = _operator(_truncating)
    __rfloordiv__ = _operator(_truncating, swapped=True)
    __mod__ = _operator(np.fmod)
    __rmod__ = _operator(np.fmod, swapped=True)
    __and__, __rand__ = _operator(operator.and_), _operator(operator.and_, swapped=True)
    __or__, __ror__ = _operator(operator.or_), _operator(operator.or_, swapped=True)
    __xor__, __rxor__ = _operator(operator.xor), _operator(operator.xor, swapped=True)
    __lt__, __le__ = _operator(operator.lt), _operator(operator.le)
    __gt__, __ge__ = _operator(operator.gt), _operator(operator.ge)
    __eq__, __ne__ = _operator(operator.eq), _operator(operator.ne)  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


class Pointer:
    """Addresses in a flat array of the host."""

    __array_ufunc__ = None

    def __init__(self, memory: np.ndarray, offset: Any = 0) -> None:
        self.memory, self.offset = memory, offset

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(self.memory, self.offset + raw(offset))

    __radd__ = __add__

    def load(self, mask: Any = None, other: Any = 0) -> Tile:
        """Read; an address past the end that no mask excludes is an error."""
        offset, keep = np.broadcast_arrays(self.offset, True if mask is None else raw(mask))
        self._check(offset, keep)
        return Tile(np.where(keep, self.memory[np.where(keep, offset, 0)], raw(other)))

    def store(self, value: Any, mask: Any = None) -> None:
        """Write, with the same check."""
        parts = (self.offset, raw(value), True if mask is None else raw(mask))
        offset, values, keep = np.broadcast_arrays(*parts)
        self._check(offset, keep)
        self.memory[offset[keep]] = values[keep]

    def _check(self, offset: np.ndarray, keep: np.ndarray) -> None:
        outside = keep & ((offset < 0) | (offset >= self.memory.size))
        if outside.any():
            first = int(offset[outside].flat[0])
            raise IndexError(f"address {first} of a tensor of {self.memory.size} elements")
