"""CUDA's libdevice functions and a few PTX instructions, in numpy, for Triton's interpreter.

Triton turns `libdevice.tanh(x)` into a call of the symbol `__nv_tanhf` or `__nv_tanh`. The tables
here give the value of such a symbol: computed in float64 and rounded once to the result type, so at
most half an ulp off, where libdevice itself is off by 0 to 2 ulp (CUDA Programming Guide, appendix
"Mathematical Functions"). What is not in the tables is refused by name, never approximated by
something else. No Triton import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hotloop.worker.interpreter_formats import round_to_tf32

Array = np.ndarray[Any, Any]
Function = Callable[..., Array]

SYMBOL_PREFIX = "__nv_"


def _by_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    def apply(x: Array) -> Array:
        result: Array = function(torch.from_numpy(np.array(x, dtype=np.float64))).numpy()
        return result

    return apply


def _round_half_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _norm(*components: Array) -> Array:
    total = components[0] * components[0]
    for component in components[1:]:
        total = total + component * component
    return np.sqrt(total)


_special: Any = torch.special

FLOAT_FUNCTIONS: dict[str, Function] = {
    # exponentials and logarithms
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "pow": np.power,
    "powi": np.power,
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int64)),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int64)),
    # roots
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "cbrt": np.cbrt,
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "hypot": np.hypot,
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "norm3d": _norm,
    "norm4d": _norm,
    "rnorm3d": lambda *parts: 1.0 / _norm(*parts),
    "rnorm4d": lambda *parts: 1.0 / _norm(*parts),
    # trigonometry
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    # error function and relatives
    "erf": _by_torch(_special.erf),
    "erfc": _by_torch(_special.erfc),
    "erfcx": _by_torch(_special.erfcx),
    "erfinv": _by_torch(_special.erfinv),
    "normcdf": _by_torch(_special.ndtr),
    "normcdfinv": _by_torch(_special.ndtri),
    "lgamma": _by_torch(torch.lgamma),
    "tgamma": lambda x: _gamma(x),
    "j0": _by_torch(_special.bessel_j0),
    "j1": _by_torch(_special.bessel_j1),
    "y0": _by_torch(_special.bessel_y0),
    "y1": _by_torch(_special.bessel_y1),
    "cyl_bessel_i0": _by_torch(_special.i0),
    "cyl_bessel_i1": _by_torch(_special.i1),
    # rounding
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": _round_half_away,
    "rint": np.rint,
    "nearbyint": np.rint,
    "llround": _round_half_away,
    "llrint": np.rint,
    # pieces and comparisons
    "fabs": np.abs,
    "abs": np.abs,
    "llabs": np.abs,
    "copysign": np.copysign,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0.0)),
    "fmod": np.fmod,
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "saturate": lambda x: np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0)),
    "fma": lambda x, y, z: x * y + z,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "finite": np.isfinite,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
}
"""Functions of float64 arrays, by libdevice name without prefix and type suffix."""

# Intrinsics with a rounding suffix: `_rn` is the default rounding, so the plain operation.
_ROUNDED_TO_NEAREST: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
}
FLOAT_FUNCTIONS |= {
    f"{prefix}{name}_rn": function
    for prefix in ("f", "d")
    for name, function in _ROUNDED_TO_NEAREST.items()
}
FLOAT_FUNCTIONS["fmaf_rn"] = FLOAT_FUNCTIONS["fma_rn"] = FLOAT_FUNCTIONS["fma"]

# The `fast_` intrinsics are allowed to be less exact; here they are exact.
FLOAT_FUNCTIONS |= {
    f"fast_{name}": FLOAT_FUNCTIONS[name]
    for name in ("cos", "exp", "exp10", "log", "log2", "log10", "pow", "sin", "tan")
}
FLOAT_FUNCTIONS["fast_fdivide"] = np.divide

_ROUND_TO_INT: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
FLOAT_FUNCTIONS |= {
    f"{source}2{target}_{suffix}": function
    for source in ("float", "double")
    for target in ("int", "uint", "ll", "ull")
    for suffix, function in _ROUND_TO_INT.items()
}

BIT_VIEWS = frozenset(
    {"float_as_int", "float_as_uint", "int_as_float", "uint_as_float"}
    | {"double_as_longlong", "longlong_as_double"}
)
"""Functions that only change the type of the same bits."""


def _gamma(x: Array) -> Array:
    magnitude = np.exp(FLOAT_FUNCTIONS["lgamma"](x))
    negative = (x < 0) & (np.mod(np.floor(x), 2.0) == 1.0)
    poles = (x < 0) & (np.floor(x) == x)
    return np.where(poles, np.nan, np.where(negative, -magnitude, magnitude))


def _population_count(x: Array) -> Array:
    return np.bitwise_count(x.view(f"u{x.itemsize}")).astype(np.int32)


def _leading_zeros(x: Array) -> Array:
    bits = x.view(f"u{x.itemsize}").copy()
    for shift in (1, 2, 4, 8, 16, 32)[: 5 if x.itemsize == 4 else 6]:
        bits |= bits >> bits.dtype.type(shift)
    return (8 * x.itemsize - _population_count(bits)).astype(np.int32)


def _find_first_set(x: Array) -> Array:
    lowest = x & -x
    return np.where(x == 0, 0, 8 * x.itemsize - _leading_zeros(lowest)).astype(np.int32)


def _reverse_bits(x: Array) -> Array:
    as_bytes = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, x.itemsize)
    bits = np.unpackbits(as_bytes, axis=-1, bitorder="little")[..., ::-1]
    packed = np.packbits(bits, axis=-1, bitorder="little")
    return np.ascontiguousarray(packed).view(x.dtype).reshape(x.shape)


def _multiply_high(x: Array, y: Array) -> Array:
    product = x.astype(object) * y.astype(object)
    return (product >> (8 * x.itemsize)).astype(x.dtype)


INTEGER_FUNCTIONS: dict[str, Function] = {
    "abs": np.abs,
    "llabs": np.abs,
    "popc": _population_count,
    "popcll": _population_count,
    "clz": _leading_zeros,
    "clzll": _leading_zeros,
    "ffs": _find_first_set,
    "ffsll": _find_first_set,
    "brev": _reverse_bits,
    "brevll": _reverse_bits,
    "mulhi": _multiply_high,
    "umulhi": _multiply_high,
    "mul64hi": _multiply_high,
    "umul64hi": _multiply_high,
}
"""Functions of integer arrays, by libdevice name without prefix."""


def _tanh_approx(x: Array) -> Array:
    """`tanh.approx.f32`: relative error up to 2^-11 (PTX ISA), so only that much is kept."""
    return round_to_tf32(np.tanh(x.astype(np.float64)).astype(np.float32))


def _ex2_approx(x: Array) -> Array:
    """`ex2.approx.f32`: within 2 ulp (PTX ISA); subnormal inputs give 1."""
    return np.exp2(x.astype(np.float64)).astype(np.float32)


PTX_INSTRUCTIONS: dict[str, Function] = {
    "tanh.approx.f32 $0, $1;": _tanh_approx,
    "ex2.approx.f32 $0, $1;": _ex2_approx,
    "cvt.rna.tf32.f32 $0, $1;": round_to_tf32,
}
"""The inline assembly that can be interpreted, by its text with single spaces."""


def libdevice_name(symbol: str) -> str | None:
    """Return the table name of libdevice `symbol`, or None when no table has it."""
    name = symbol.removeprefix(SYMBOL_PREFIX)
    for candidate in (name, name[:-1] if name[-1:] in "fd" else name):
        if candidate in FLOAT_FUNCTIONS or candidate in INTEGER_FUNCTIONS or candidate in BIT_VIEWS:
            return candidate
    return None
