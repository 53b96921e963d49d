"""The pointwise vocabulary as Triton expressions: one row an operation.

A `Form` says how to write one operation on operands that are texts already. Nothing here knows of
graphs, tiles or shapes; `lower` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

# Python's operator precedence, loosest first: what decides where parentheses go.
COMPARE, OR, AND, ADD, MULTIPLY, UNARY, ATOM = 1, 2, 3, 4, 5, 6, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How one operation is written."""

    text: str
    """Format string with `{0}`, `{1}`, ... for the operands."""
    binding: int = ATOM
    """Precedence of the result."""
    operands: int = COMPARE
    """Precedence that operands need to go without parentheses; call arguments need none."""
    right: int | None = None
    """The same for the last operand where it needs more (`-`, `/`)."""
    kind: str = "float"
    """What operands are converted to: `float`, `int`, `bool`, or `same` (the widest of them)."""
    result: str | None = None
    """Kind of the result where it differs from that of the operands."""
    calls: tuple[str, ...] = ()
    """Device functions of `activation` that the text calls."""
    defaults: dict[str, float] = field(default_factory=dict)
    """Further parameters by their torch names, in order, with torch's defaults."""


def _infix(symbol: str, binding: int, *, kind: str = "same", result: str | None = None) -> Form:
    strict = binding + 1 if symbol in "-/" or binding == COMPARE else binding
    return Form(
        text=f"{{0}} {symbol} {{1}}",
        binding=binding,
        operands=strict if binding == COMPARE else binding,
        right=strict,
        kind=kind,
        result=result,
    )


def _call(function: str, *, arity: int = 1, kind: str = "float", **defaults: float) -> Form:
    inside = ", ".join(f"{{{i}}}" for i in range(arity + len(defaults)))
    own = () if "." in function else (function,)
    return Form(text=f"{function}({inside})", kind=kind, calls=own, defaults=defaults)


FORMS: dict[str, Form] = {
    "add": _infix("+", ADD),
    "sub": _infix("-", ADD),
    "mul": _infix("*", MULTIPLY),
    "div": _infix("/", MULTIPLY, kind="float"),
    "neg": Form(text="-{0}", binding=UNARY, operands=UNARY, kind="same"),
    "abs": _call("tl.abs", kind="same"),
    "minimum": _call("tl.minimum", arity=2, kind="same"),
    "maximum": _call("tl.maximum", arity=2, kind="same"),
    "square": Form(text="{0} * {0}", binding=MULTIPLY, operands=UNARY, kind="same"),
    "reciprocal": Form(text="1.0 / {0}", binding=MULTIPLY, operands=UNARY),
    "sign": _call("sign"),
    "exp": _call("tl.exp"),
    "exp2": _call("tl.exp2"),
    "log": _call("tl.log"),
    "log1p": _call("libdevice.log1p"),
    "expm1": _call("libdevice.expm1"),
    "sqrt": _call("tl.sqrt_rn"),
    "rsqrt": _call("tl.rsqrt"),
    "tanh": _call("tanh"),
    "sigmoid": _call("tl.sigmoid"),
    "erf": _call("tl.erf"),
    "sin": _call("tl.sin"),
    "cos": _call("tl.cos"),
    "floor": _call("tl.floor"),
    "ceil": _call("tl.ceil"),
    "round": _call("libdevice.rint"),
    "relu": Form(text="tl.maximum({0}, 0)", kind="same"),
    "gelu_erf": _call("gelu_erf"),
    "gelu_tanh": _call("gelu_tanh"),
    "silu": Form(text="{0} * tl.sigmoid({0})", binding=MULTIPLY, operands=UNARY),
    "softplus": _call("softplus", beta=1.0, threshold=20.0),
    "elu": _call("elu", alpha=1.0),
    "selu": _call("selu"),
    "leaky_relu": _call("leaky_relu", negative_slope=0.01),
    "hardtanh": Form(
        text="tl.minimum(tl.maximum({0}, {1}), {2})",
        defaults={"min_val": -1.0, "max_val": 1.0},
    ),
    "hardsigmoid": _call("hardsigmoid"),
    "hardswish": _call("hardswish"),
    "softsign": Form(text="{0} / (1.0 + tl.abs({0}))", binding=MULTIPLY, operands=UNARY),
    "mish": _call("mish"),
    "eq": _infix("==", COMPARE, result="bool"),
    "ne": _infix("!=", COMPARE, result="bool"),
    "lt": _infix("<", COMPARE, result="bool"),
    "le": _infix("<=", COMPARE, result="bool"),
    "gt": _infix(">", COMPARE, result="bool"),
    "ge": _infix(">=", COMPARE, result="bool"),
    "logical_and": _infix("&", AND, kind="bool"),
    "logical_or": _infix("|", OR, kind="bool"),
    "logical_not": Form(text="~{0}", binding=UNARY, operands=UNARY, kind="bool"),
}
"""Operations that need no more than their operands' texts."""

STRUCTURAL = frozenset({"where", "cast", "pow", "floordiv", "remainder", "clamp", "constant"})
"""Operations that `lower` writes by a rule of their own."""

POINTWISE = frozenset(FORMS) | STRUCTURAL
"""The whole pointwise vocabulary of `core.graph`."""

TRITON_DTYPES = {
    "float64": "tl.float64",
    "float32": "tl.float32",
    "float16": "tl.float16",
    "bfloat16": "tl.bfloat16",
    "int64": "tl.int64",
    "int32": "tl.int32",
    "int16": "tl.int16",
    "int8": "tl.int8",
    "uint8": "tl.uint8",
    "bool": "tl.int1",
}
"""Triton's names of torch dtypes."""


def kind_of(dtype: str) -> str:
    """Return `float`, `int` or `bool` for a torch dtype name."""
    if dtype == "bool":
        return "bool"
    return "float" if dtype.startswith(("float", "bfloat")) else "int"


def literal(value: float | int | bool) -> str:
    """Write a number so that float32 reads back the same value.

    Nine significant digits identify a float32 (IEEE 754-2008, 5.12.2).
    """
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value)
    if math.isnan(value) or math.isinf(value):
        return f'float("{value}")'
    text = f"{value:.9g}"
    return text if any(c in text for c in ".e") else f"{text}.0"
