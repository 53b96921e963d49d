"""How `tl.dot` multiplies float32 tiles: `input_precision`, as a dimension of a schedule space.

tf32    operands rounded to TF32's 10 bits of mantissa: only where the problem's policy allows it
tf32x3  three products of operands split into two TF32 parts: as exact as float32
ieee    on the float32 units, without tensor cores

For `tf32` Triton hands float32 bits to the tensor cores as they are, and these drop the last 13:
values are cut toward zero, always to the same side, so that the errors of a sum add up. cuBLAS and
cuDNN round to nearest, and so does the reference that kernels are held to. Kernels therefore round
first, by one instruction an element (`ROUND`).
"""

from __future__ import annotations

from hotloop.core.space import Dimension

DOT_PRECISION = "dot_precision"
"""The dimension's name."""
TF32 = "tf32"
ROUND = "round_to_tf32"
"""The device function that operands of `tf32` products go through."""
WHY_TF32 = "operands are rounded to TF32: the problem's policy allows it"
"""What generated source says beside the choice `tf32`."""


def dot_precision(*, allows_tf32: bool, full: tuple[str, ...] = ("tf32x3", "ieee")) -> Dimension:
    """Return the choices for float32 tiles, best guess first.

    Args:
        allows_tf32: whether the policy lets these products round their operands to TF32.
        full: the choices that keep float32.
    """
    return Dimension(name=DOT_PRECISION, choices=(*((TF32,) if allows_tf32 else ()), *full))


def on_tensor_cores(dimension: Dimension) -> tuple[str, ...]:
    """Return the choices of a `dot_precision` that multiply on tensor cores."""
    return tuple(str(choice) for choice in dimension.choices if choice != "ieee")


def rounding(precision: object) -> frozenset[str]:
    """Return what a kernel calls for this choice: `ROUND`, or nothing."""
    return frozenset({ROUND} if precision == TF32 else ())
