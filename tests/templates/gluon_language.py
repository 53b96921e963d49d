"""The emulated language: what `gl` and `tl` offer to generated attention kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from gluon_hopper import allocate_shared_memory, warp_specialize
from gluon_machine import current
from gluon_values import DTYPES, Dtype, Pointer, Tile, raw

int1, int8, int32, int64 = (DTYPES[n] for n in ("int1", "int8", "int32", "int64"))
int16, uint8 = DTYPES["int16"], DTYPES["uint8"]
float16, bfloat16 = DTYPES["float16"], DTYPES["bfloat16"]
float32, float64 = DTYPES["float32"], DTYPES["float64"]


class _Number(int):
    """A compile-time integer, with `.value` for the host."""

    @property
    def value(self) -> int:
        return int(self)


class _Real(float):
    """A compile-time float."""

    @property
    def value(self) -> float:
        return float(self)


def constexpr(value: Any) -> Any:
    """Return a value that the host may ask for as `.value`."""
    if isinstance(value, bool | int):
        return _Number(value)
    if isinstance(value, float):
        return _Real(value)
    if isinstance(value, Dtype):
        value.value = value  # type: ignore[attr-defined]
        return value
    return SimpleNamespace(value=value)


def _layout(*_: Any, **__: Any) -> str:
    return "layout"


BlockedLayout = SliceLayout = NVMMADistributedLayout = DotOperandLayout = _layout


class NVMMASharedLayout:
    """Shared memory as TMA and wgmma use it."""

    @staticmethod
    def get_default_for(shape: Sequence[int], dtype: Any) -> str:
        """Return a layout."""
        return "tiles"


def arange(start: int, end: int, layout: Any = None) -> Tile:
    """Count."""
    if (end - start) & (end - start - 1):
        raise ValueError(f"a range of {end - start}: expected a power of two")
    return Tile(np.arange(start, end, dtype=np.int32))


def full(shape: Sequence[int], value: float, dtype: Dtype, layout: Any = None) -> Tile:
    """Fill."""
    return Tile(np.full([int(n) for n in shape], value, dtype.holder))


def zeros(shape: Sequence[int], dtype: Dtype, layout: Any = None) -> Tile:
    """Fill with 0."""
    return full(shape, 0, dtype)


def zeros_like(x: Tile) -> Tile:
    """Fill with 0, in the shape of `x`."""
    return Tile(np.zeros_like(x.array))


def convert_layout(x: Tile, layout: Any, assert_trivial: bool = False) -> Tile:
    """Return the same values."""
    return x


def broadcast_to(x: Any, shape: Sequence[int]) -> Tile:
    """Broadcast."""
    return Tile(np.broadcast_to(raw(x), [int(n) for n in shape]))


def where(condition: Any, x: Any, y: Any) -> Tile:
    """Choose."""
    chosen = np.where(raw(condition), raw(x), raw(y))
    return Tile(chosen.astype(np.float32) if chosen.dtype == np.float64 else chosen)


def _elementwise(function: Callable[..., Any]) -> Callable[..., Tile]:
    def apply(*operands: Any) -> Tile:
        with np.errstate(all="ignore"):
            result = np.asarray(function(*(raw(x) for x in operands)))
        return Tile(result.astype(np.float32) if result.dtype == np.float64 else result)

    return apply


minimum, maximum, abs = (_elementwise(f) for f in (np.minimum, np.maximum, np.abs))
exp, exp2, log, log2 = (_elementwise(f) for f in (np.exp, np.exp2, np.log, np.log2))
sqrt = sqrt_rn = _elementwise(np.sqrt)
rsqrt = _elementwise(lambda x: 1 / np.sqrt(x))
sin, cos, floor, ceil = (_elementwise(f) for f in (np.sin, np.cos, np.floor, np.ceil))
erf = _elementwise(np.vectorize(math.erf))
sigmoid = _elementwise(lambda x: 1 / (1 + np.exp(-x)))

LIBDEVICE = {
    "tanh": _elementwise(np.tanh),
    "log1p": _elementwise(np.log1p),
    "expm1": _elementwise(np.expm1),
    "pow": _elementwise(np.power),
    "rint": _elementwise(np.rint),
}


def inline_asm_elementwise(asm: str, constraints: str, args: Any, **_: Any) -> Tile:
    """Run the one instruction that kernels write themselves."""
    if not asm.startswith("tanh.approx.f32"):
        raise NotImplementedError(asm)
    return _elementwise(np.tanh)(*args)


def _reduction(function: Callable[..., Any]) -> Callable[..., Tile]:
    return lambda x, axis: Tile(function(x.array, axis=axis))


sum, max, min = (_reduction(f) for f in (np.sum, np.max, np.min))


def cdiv(a: Any, b: Any) -> Any:
    """Divide, rounding up."""
    return (a + (b - 1)) // b


def static_range(count: int) -> range:
    """Unroll."""
    return range(int(count))


def program_id(axis: int) -> Tile:
    """Return the number of the program."""
    return Tile(np.int32(current().program))


def num_programs(axis: int) -> Tile:
    """Return the size of the grid."""
    return Tile(np.int32(current().programs))


def load(pointer: Pointer, mask: Any = None, other: Any = 0) -> Tile:
    """Read."""
    return pointer.load(mask, other)


def store(pointer: Pointer, value: Any, mask: Any = None) -> None:
    """Write."""
    pointer.store(value, mask)


NAMES = [name for name in dir() if not name.startswith("_") and name not in ("annotations", "np")]

__all__ = ["DTYPES", "LIBDEVICE", "NAMES", "allocate_shared_memory", "warp_specialize"]
