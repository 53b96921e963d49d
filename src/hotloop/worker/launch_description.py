"""The launch description at the top of a `.cu` candidate: what to run, with which buffers.

The first comment block of the file is a JSON object. Sizes are names, bound by the shapes of the
inputs; everything else is arithmetic in them (see `expression.py`):

    /* {
      "inputs":  {"x": ["B", "S"], "eps": null},
      "state":   {"weight": ["S"]},
      "outputs": {"y": {"shape": ["B", "S"], "dtype": "float32"}},
      "scratch": {"sums": {"shape": ["B"], "dtype": "float32"}},
      "sizes":   {"BLOCKS": "cdiv(B, 4)"},
      "kernels": [{"name": "norm", "grid": ["BLOCKS"], "block": [256], "shared_bytes": "4 * S",
                   "args": ["x", "weight", "y", "sums", "B", {"float32": "eps"}]}]
    } */

`inputs` are forward's arguments in order (null: a plain number, known by its name); `state` are
parameters and buffers by the reference's names. Kernels run one after the other. An argument is a
buffer, a size (passed as int32), or `{type: expression}`. Outputs and scratch hold NaN before each
call. Buffers are contiguous unless the problem says otherwise. Nothing here executes what it reads.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

DTYPES = frozenset(
    {"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"}
    | {"int64", "int32", "int16", "int8", "uint8", "bool"}
)
SCALAR_TYPES = frozenset({"int32", "uint32", "int64", "uint64", "float32", "float64"})

MAX_KERNELS = 64

_COMMENT = re.compile(r"\s*/\*(.*?)\*/", re.DOTALL)
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_KEYS = {"inputs", "state", "outputs", "scratch", "sizes", "kernels"}
_KERNEL_KEYS = {"name", "grid", "block", "shared_bytes", "args"}


class LaunchDescriptionError(ValueError):
    """A launch description is malformed or does not fit its inputs; the message says where."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tensor that the plan allocates."""

    shape: tuple[Any, ...]
    """Expressions."""
    dtype: str


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One launch, still in expressions."""

    name: str
    grid: tuple[Any, ...]
    block: tuple[Any, ...]
    shared_bytes: Any
    """Dynamic shared memory."""
    args: tuple[tuple[str, Any], ...]
    """(`buffer`, name) or (scalar type, expression)."""


@dataclass(frozen=True, slots=True)
class LaunchDescription:
    """A parsed description."""

    inputs: dict[str, tuple[Any, ...] | None]
    state: dict[str, tuple[Any, ...]]
    outputs: dict[str, Buffer]
    scratch: dict[str, Buffer]
    sizes: dict[str, Any]
    kernels: tuple[KernelLaunch, ...]


def parse(source: str) -> LaunchDescription:
    """Read the description from a `.cu` file's text.

    Raises:
        LaunchDescriptionError: there is none, or it is malformed.
    """
    match = _COMMENT.match(source)
    if match is None:
        raise LaunchDescriptionError(
            "expected the file to begin with a /* { ... } */ launch description"
        )
    try:
        data = json.loads(match.group(1))
    except json.JSONDecodeError as error:
        line = source[: match.start(1)].count("\n") + error.lineno
        raise LaunchDescriptionError(
            f"line {line}: the launch description is no JSON: {error.msg}"
        ) from error
    _check_keys("the description", data, _KEYS, {"inputs", "outputs", "kernels"})
    plan = LaunchDescription(
        inputs={name: _shape_or_none(name, shape) for name, shape in _items(data, "inputs")},
        state={name: _shape(name, shape) for name, shape in _items(data, "state", dotted=True)},
        outputs={name: _buffer(name, spec) for name, spec in _items(data, "outputs")},
        scratch={name: _buffer(name, spec) for name, spec in _items(data, "scratch")},
        sizes=dict(_items(data, "sizes")),
        kernels=(),
    )
    return _with_kernels(plan, data["kernels"])


def _with_kernels(plan: LaunchDescription, data: Any) -> LaunchDescription:
    if not isinstance(data, list) or not 0 < len(data) <= MAX_KERNELS:
        raise LaunchDescriptionError(f"kernels: expected a list of 1 to {MAX_KERNELS} launches")
    tensors = [name for name, shape in plan.inputs.items() if shape is not None]
    buffers = [*tensors, *plan.state, *plan.outputs, *plan.scratch]
    twice = sorted({name for name in buffers if buffers.count(name) > 1})
    if twice:
        raise LaunchDescriptionError(f"expected each buffer's name once, got {twice} twice")
    kernels = tuple(_kernel(entry, set(buffers)) for entry in data)
    passed = {value for kernel in kernels for kind, value in kernel.args if kind == "buffer"}
    unwritten = [name for name in plan.outputs if name not in passed]
    if unwritten:
        raise LaunchDescriptionError(f"outputs {unwritten}: no kernel has them among its args")
    return LaunchDescription(
        plan.inputs, plan.state, plan.outputs, plan.scratch, plan.sizes, kernels
    )


def _kernel(data: Any, buffers: set[str]) -> KernelLaunch:
    _check_keys("a kernel", data, _KERNEL_KEYS, {"name", "grid", "block", "args"})
    name = data["name"]
    if not isinstance(name, str) or not NAME.match(name):
        raise LaunchDescriptionError(f"a kernel's name must be an identifier, got {name!r}")
    if not isinstance(data["args"], list):
        raise LaunchDescriptionError(f"kernel {name}: expected args to be a list")
    return KernelLaunch(
        name,
        _extent(name, "grid", data["grid"]),
        _extent(name, "block", data["block"]),
        data.get("shared_bytes", 0),
        tuple(_argument(name, entry, buffers) for entry in data["args"]),
    )


def _argument(kernel: str, data: Any, buffers: set[str]) -> tuple[str, Any]:
    if isinstance(data, str):
        return ("buffer", data) if data in buffers else ("int32", data)
    if isinstance(data, dict) and len(data) == 1:
        ((kind, expression),) = data.items()
        if kind in SCALAR_TYPES:
            return kind, expression
    raise LaunchDescriptionError(
        f"kernel {kernel}: expected an argument to be a buffer, a size or {{type: expression}} "
        f"with one of {', '.join(sorted(SCALAR_TYPES))}, got {json.dumps(data)}"
    )


def _buffer(name: str, data: Any) -> Buffer:
    _check_keys(name, data, {"shape", "dtype"}, {"shape", "dtype"})
    if data["dtype"] not in DTYPES:
        raise LaunchDescriptionError(f"{name!r}: unknown dtype {data['dtype']!r}")
    return Buffer(_shape(name, data["shape"]), data["dtype"])


def _shape_or_none(name: str, data: Any) -> tuple[Any, ...] | None:
    return None if data is None else _shape(name, data)


def _shape(name: str, data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise LaunchDescriptionError(
            f"{name!r}: expected a list of extents, got {json.dumps(data)}"
        )
    return tuple(data)


def _extent(kernel: str, what: str, data: Any) -> tuple[Any, ...]:
    extent = data if isinstance(data, list) else [data]
    if not 1 <= len(extent) <= 3:
        raise LaunchDescriptionError(
            f"kernel {kernel}: expected 1 to 3 {what} extents, got {len(extent)}"
        )
    return tuple(extent)


def _items(data: dict[str, Any], key: str, *, dotted: bool = False) -> list[tuple[str, Any]]:
    section = data.get(key, {})
    if not isinstance(section, dict):
        raise LaunchDescriptionError(f"{key}: expected an object, got {type(section).__name__}")
    for name in section:
        if not all(NAME.match(part) for part in (name.split(".") if dotted else [name])):
            raise LaunchDescriptionError(f"{key}: {name!r} is no identifier")
    return list(section.items())


def _check_keys(what: str, data: Any, allowed: set[str], needed: set[str]) -> None:
    if not isinstance(data, dict):
        raise LaunchDescriptionError(f"{what}: expected an object, got {type(data).__name__}")
    unknown, missing = sorted(data.keys() - allowed), sorted(needed - data.keys())
    if unknown:
        raise LaunchDescriptionError(
            f"{what}: unknown {', '.join(unknown)}; known {sorted(allowed)}"
        )
    if missing:
        raise LaunchDescriptionError(f"{what}: {', '.join(missing)} missing")
