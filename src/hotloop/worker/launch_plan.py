"""A launch description in numbers, for one set of shapes.

Sizes are bound by the inputs' shapes, in order; then every expression of the description has a
value. What a launch asks for is held against the limits of sm_90 here, before anything compiles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.worker.expression import ExpressionError, Number, evaluate, evaluate_int
from hotloop.worker.launch_description import (
    NAME,
    Buffer,
    KernelLaunch,
    LaunchDescription,
    LaunchDescriptionError,
)

MAX_THREADS = 1024
MAX_GRID = (2**31 - 1, 65535, 65535)
"""Blocks per dimension (CUDA Programming Guide, "Compute Capabilities")."""
MAX_SHARED_BYTES = 227 * 1024
"""Shared memory of one block on sm_90 (the same table)."""
ARGUMENT_BYTES = {
    "buffer": 8,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "float32": 4,
    "float64": 8,
}
"""What a kernel's parameter of each kind takes."""
MAX_ELEMENTS = 1 << 40
"""Of one buffer; far beyond any GPU's memory, far below where byte counts overflow."""
INTEGER_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """One launch in numbers."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    args: tuple[tuple[str, Any], ...]
    """(`buffer`, name) or (scalar type, number)."""

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """A description in numbers, for one set of shapes."""

    outputs: dict[str, tuple[tuple[int, ...], str]]
    """Name -> shape, dtype."""
    scratch: dict[str, tuple[tuple[int, ...], str]]
    launches: tuple[BoundLaunch, ...]


def bind(
    plan: LaunchDescription,
    inputs: Sequence[Sequence[int] | Number],
    state: Mapping[str, Sequence[int]],
) -> BoundPlan:
    """Put numbers in a description.

    Args:
        plan: the description.
        inputs: per argument of forward its shape, or its value if it is a plain number.
        state: shapes of parameters and buffers by the reference's names.

    Raises:
        LaunchDescriptionError: shapes do not fit, an expression has no value, or a launch asks for
            more than sm_90 has.
    """
    if len(inputs) != len(plan.inputs):
        raise LaunchDescriptionError(
            f"expected {len(inputs)} inputs, the description has {len(plan.inputs)}"
        )
    names: dict[str, Number] = {}
    for (name, shape), given in zip(plan.inputs.items(), inputs, strict=True):
        if shape is None:
            if not isinstance(given, (bool, int, float)):
                raise LaunchDescriptionError(
                    f"input {name!r} is a tensor, the description has null"
                )
            names[name] = given if isinstance(given, float) else int(given)
        elif isinstance(given, (bool, int, float)):
            raise LaunchDescriptionError(f"input {name!r} is a number, the description has a shape")
        else:
            _bind_shape(name, shape, given, names)
    for name, shape in plan.state.items():
        if name not in state:
            raise LaunchDescriptionError(
                f"state {name!r}: the reference has {', '.join(state) or 'none'}"
            )
        _bind_shape(name, shape, state[name], names)
    try:
        for name, expression in plan.sizes.items():
            names[name] = evaluate(expression, names)
        return BoundPlan(
            {name: _bound_buffer(buffer, names) for name, buffer in plan.outputs.items()},
            {name: _bound_buffer(buffer, names) for name, buffer in plan.scratch.items()},
            tuple(_bound_launch(kernel, names) for kernel in plan.kernels),
        )
    except ExpressionError as error:
        raise LaunchDescriptionError(str(error)) from error


def _bound_launch(kernel: KernelLaunch, names: Mapping[str, Number]) -> BoundLaunch:
    grid, block = (_three(extent, names) for extent in (kernel.grid, kernel.block))
    launch = BoundLaunch(
        kernel.name,
        grid,
        block,
        evaluate_int(kernel.shared_bytes, names),
        tuple(
            (kind, value if kind == "buffer" else _scalar(kind, value, names))
            for kind, value in kernel.args
        ),
    )
    problem = _limit_broken(launch)
    if problem:
        raise LaunchDescriptionError(f"kernel {kernel.name}: {problem}")
    return launch


def _limit_broken(launch: BoundLaunch) -> str:
    if any(not 1 <= n <= limit for n, limit in zip(launch.grid, MAX_GRID, strict=True)):
        return f"expected a grid from 1 to {MAX_GRID}, got {launch.grid}"
    if min(launch.block) < 1 or launch.block[2] > 64 or launch.threads > MAX_THREADS:
        return f"expected a block of 1 to {MAX_THREADS} threads, got {launch.block}"
    if not 0 <= launch.shared_bytes <= MAX_SHARED_BYTES:
        return f"expected 0 to {MAX_SHARED_BYTES} bytes of shared memory, got {launch.shared_bytes}"
    return ""


def _three(extent: tuple[Any, ...], names: Mapping[str, Number]) -> tuple[int, int, int]:
    values = [evaluate_int(entry, names) for entry in extent] + [1, 1]
    return values[0], values[1], values[2]


def _scalar(kind: str, expression: Any, names: Mapping[str, Number]) -> Number:
    if kind.startswith("float"):
        return float(evaluate(expression, names))
    value = evaluate_int(expression, names)
    low, high = INTEGER_RANGES[kind]
    if not low <= value <= high:
        raise LaunchDescriptionError(
            f"{expression!r} is {value}, outside {kind}; pass it as {{'int64': ...}}"
        )
    return value


def _bound_buffer(buffer: Buffer, names: Mapping[str, Number]) -> tuple[tuple[int, ...], str]:
    shape = tuple(evaluate_int(entry, names) for entry in buffer.shape)
    if min(shape, default=0) < 0 or math.prod(shape) > MAX_ELEMENTS:
        raise LaunchDescriptionError(f"expected extents from 0 on that fit a GPU, got {shape}")
    return shape, buffer.dtype


def _bind_shape(
    name: str, shape: tuple[Any, ...], given: Sequence[int], names: dict[str, Number]
) -> None:
    if len(shape) != len(given):
        raise LaunchDescriptionError(
            f"{name!r} has shape {tuple(given)}, the description has {list(shape)}"
        )
    for entry, extent in zip(shape, given, strict=True):
        if isinstance(entry, str) and NAME.match(entry) and entry not in names:
            names[entry] = int(extent)
            continue
        try:
            expected = evaluate_int(entry, names)
        except ExpressionError as error:
            raise LaunchDescriptionError(f"{name!r}: {error}") from error
        if expected != extent:
            raise LaunchDescriptionError(
                f"{name!r}: {entry!r} is {expected}, its extent is {extent}"
            )
