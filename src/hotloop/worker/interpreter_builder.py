"""A Triton interpreter builder whose arithmetic agrees with the GPU's.

Triton's interpreter calls one method of its builder per operation. The stock builder computes on
bfloat16 and fp8 bit patterns as if they were integers, truncates where the GPU rounds to nearest,
ignores the precision of a dot, and has neither libdevice nor inline assembly. `GpuLikeBuilder`
overrides those methods and nothing else; shapes and masks stay Triton's.

It holds for Triton 3.6 to 3.9: signatures that changed in between are taken as ``*args``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton._C.libtriton import ir as _ir
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import min_dot_size
from triton.runtime import interpreter as _stock

from hotloop.worker.faults import UnsupportedInInterpreterError
from hotloop.worker.interpreter_formats import Array, round_to_tf32, split_bf16
from hotloop.worker.interpreter_handles import (
    Handle,
    make_handle,
    numbers_of,
    scalar_name,
)
from hotloop.worker.interpreter_maths import (
    BIT_VIEWS,
    FLOAT_FUNCTIONS,
    INTEGER_FUNCTIONS,
    PTX_INSTRUCTIONS,
    Function,
    libdevice_name,
)
from hotloop.worker.interpreter_memory import MemoryBuilder

_COMPARISONS = frozenset(
    {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
)
_HOPPER = GPUTarget("cuda", 90, 32)


class _AsmResult:
    """What the language layer expects back from inline assembly: results by number."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def get_result(self, index: int) -> Handle:
        if index != 0:
            raise IndexError(f"the interpreted instruction has one result, asked for {index}")
        return self._handle


class GpuLikeBuilder(MemoryBuilder):
    """Triton's interpreter builder with the arithmetic of an sm_90 GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.options = _stock.InterpreterOptions(
            allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
        )
        self.codegen_fns["min_dot_size"] = min_dot_size(_HOPPER)

    # --- constants and casts ---

    def get_bf16(self, value: float) -> Handle:
        """Return a bfloat16 constant."""
        return make_handle(np.array([value], dtype=np.float64), tl.bfloat16)

    def cast_impl(self, src: Handle, dst_type: Any) -> Handle:
        """Convert between any two scalar types; to nearest even when digits are lost."""
        return make_handle(numbers_of(src), dst_type.scalar)

    def create_fp_to_fp(self, src: Handle, dst_type: Any, rounding_mode: Any) -> Handle:
        """Convert between floating types with the rounding that the kernel asked for."""
        if "fp8e4b15" in (scalar_name(src), str(dst_type.scalar)):
            raise UnsupportedInInterpreterError(
                "fp8e4b15 cannot be interpreted: expected fp8e4nv or fp8e5, the types sm_90 has"
            )
        toward_zero = rounding_mode == _ir.ROUNDING_MODE.RTZ
        return make_handle(numbers_of(src), dst_type.scalar, toward_zero=toward_zero)

    # --- elementwise ---

    def binary_op(self, lhs: Handle, rhs: Handle, op: Any) -> Handle:
        """Apply a numpy operation to two handles; a comparison gives int1."""
        if op in _COMPARISONS:
            return _stock.TensorHandle(op(numbers_of(lhs), numbers_of(rhs)), tl.int1)
        dtype = lhs.dtype.scalar
        a, b = numbers_of(lhs), numbers_of(rhs)
        if a.dtype == np.bool_ and b.dtype == np.bool_:
            wrapped = op(a.astype(np.int8), b.astype(np.int8)) & 1  # int1 wraps like any integer
            return _stock.TensorHandle(wrapped.astype(np.bool_), dtype)
        return self._like(op(a, b), dtype)

    def unary_op(self, arg: Handle, op: Any) -> Handle:
        """Apply a numpy operation to one handle."""
        return self._like(op(numbers_of(arg)), arg.dtype.scalar)

    def ternary_op(self, lhs: Handle, rhs: Handle, other: Handle, op: Any) -> Handle:
        """Apply a numpy operation to three handles."""
        result = op(numbers_of(lhs), numbers_of(rhs), numbers_of(other))
        return self._like(result, other.dtype.scalar)

    @staticmethod
    def _like(values: Array, dtype: Any) -> Handle:
        """Wrap a result in the operands' type; pointers keep their 64-bit integers."""
        if isinstance(dtype, tl.pointer_type):
            return _stock.TensorHandle(values, dtype)
        return make_handle(values, dtype)

    def create_select(self, cond: Handle, lhs: Handle, rhs: Handle) -> Handle:
        """Choose by condition; moves bit patterns, computes nothing."""
        return _stock.TensorHandle(np.where(cond.data, lhs.data, rhs.data), rhs.dtype.scalar)

    def create_fabs(self, arg: Handle) -> Handle:
        """Clear the sign."""
        return self.unary_op(arg, np.abs)

    def create_fneg(self, arg: Handle) -> Handle:
        """Flip the sign."""
        return self.unary_op(arg, np.negative)

    # The GPU's min and max return the number when one operand is NaN, unless told to propagate it.
    def create_minnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        """Return the smaller, ignoring NaN."""
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        """Return the larger, ignoring NaN."""
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Handle, lo: Handle, hi: Handle, propagate_nans: Any) -> Handle:
        """Clamp; NaN becomes `lo` unless it is to be propagated."""
        if propagate_nans == _ir.PROPAGATE_NAN.NONE:
            return self.create_minnumf(self.create_maxnumf(arg, lo), hi)
        return self.binary_op(self.binary_op(arg, lo, np.maximum), hi, np.minimum)

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        """Multiply and add with one rounding.

        For float32 the product is exact in float64; the sum is rounded there first, which differs
        from one rounding in about one case in 2^29.
        """
        a, b, c = (numbers_of(handle).astype(np.float64) for handle in (x, y, z))
        return make_handle(a * b + c, z.dtype.scalar)

    def create_umulhi(self, lhs: Handle, rhs: Handle) -> Handle:
        """Return the upper half of the unsigned product."""
        unsigned = np.dtype(f"u{lhs.data.itemsize}")
        high = INTEGER_FUNCTIONS["umulhi"](lhs.data.view(unsigned), rhs.data.view(unsigned))
        return _stock.TensorHandle(high.view(lhs.data.dtype), lhs.dtype.scalar)

    def create_erf(self, arg: Handle) -> Handle:
        """Return the error function."""
        return self._by_float64(FLOAT_FUNCTIONS["erf"], [arg], arg.dtype.scalar)

    def create_rsqrt(self, arg: Handle) -> Handle:
        """Return one over the square root."""
        return self._by_float64(FLOAT_FUNCTIONS["rsqrt"], [arg], arg.dtype.scalar)

    @staticmethod
    def _by_float64(function: Function, args: list[Handle], dtype: Any) -> Handle:
        values = function(*(numbers_of(arg).astype(np.float64) for arg in args))
        return make_handle(np.asarray(values), dtype)

    # --- libdevice and inline assembly ---

    def create_extern_elementwise(
        self, _lib: str, _path: str, symbol: str, args: list[Handle], ret: Any, _pure: bool
    ) -> Handle:
        """Call a libdevice function by its symbol."""
        name = libdevice_name(symbol)
        dtype = ret.scalar
        if name is None:
            raise UnsupportedInInterpreterError(
                f"libdevice function {symbol} cannot be interpreted on a CPU; "
                "express it with triton.language operations, or verify on a GPU"
            )
        if name in BIT_VIEWS:
            bits = np.ascontiguousarray(args[0].data).view(_stock._get_np_dtype(dtype))
            return _stock.TensorHandle(bits, dtype)
        integers = np.issubdtype(args[0].data.dtype, np.integer)
        if integers and name in INTEGER_FUNCTIONS:
            return make_handle(INTEGER_FUNCTIONS[name](*(arg.data for arg in args)), dtype)
        return self._by_float64(FLOAT_FUNCTIONS[name], args, dtype)

    def create_inline_asm(
        self, asm: str, _constraints: str, args: list[Handle], types: list[Any], *_: Any
    ) -> _AsmResult:
        """Run one of the known PTX instructions; refuse any other by its text."""
        text = " ".join(asm.split())
        instruction = PTX_INSTRUCTIONS.get(text)
        if instruction is None:
            known = ", ".join(repr(key) for key in PTX_INSTRUCTIONS)
            raise UnsupportedInInterpreterError(
                f"inline assembly {text!r} cannot be interpreted on a CPU: expected one of "
                f"{known}; express it with triton.language operations, or verify on a GPU"
            )
        if [scalar_name(arg) for arg in args] != ["fp32"] or len(types) != 1:
            got = [scalar_name(arg) for arg in args]
            raise TypeError(f"inline assembly {text!r} takes one fp32 operand, got {got}")
        return _AsmResult(make_handle(instruction(args[0].data), types[0].scalar))

    # --- matrix products ---

    def create_dot(self, a: Handle, b: Handle, d: Handle, precision: Any, *_: Any) -> Handle:
        """Multiply two tiles and add `d`, as the tensor core does.

        16-bit and fp8 products are exact in float32 and summed there. For float32 operands `tf32`
        rounds them to TF32 first; `tf32x3`, `bf16x6` and `ieee` are float32.
        """
        lhs, rhs = numbers_of(a), numbers_of(b)
        accumulator = numbers_of(d)
        if lhs.dtype == np.float16:
            lhs, rhs = lhs.astype(np.float32), rhs.astype(np.float32)
        if not np.issubdtype(lhs.dtype, np.floating):
            product = np.matmul(lhs, rhs, dtype=accumulator.dtype)
        elif scalar_name(a) == "fp32":
            product = _float32_product(lhs, rhs, str(precision.name))
        else:
            product = _matmul(lhs, rhs)
        return make_handle(product + accumulator, d.dtype.scalar)


def _matmul(lhs: Array, rhs: Array) -> Array:
    # torch's matmul, not numpy's: it takes a transposed view and a batch at full speed.
    left, right = (torch.from_numpy(np.ascontiguousarray(side)) for side in (lhs, rhs))
    product: Array = torch.matmul(left, right).numpy()
    return product


def _float32_product(lhs: Array, rhs: Array, precision: str) -> Array:
    if precision == "TF32":
        return _matmul(round_to_tf32(lhs), round_to_tf32(rhs))
    if precision == "BF16x3":
        (high_a, low_a), (high_b, low_b) = split_bf16(lhs, 2), split_bf16(rhs, 2)
        return _matmul(low_a, high_b) + _matmul(high_a, low_b) + _matmul(high_a, high_b)
    return _matmul(lhs, rhs)
