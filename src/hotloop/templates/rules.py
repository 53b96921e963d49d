"""Operations whose text depends on more than a form: conversions, powers, divisions, choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from hotloop.core.graph import Arg, Node
from hotloop.templates.operators import (
    ATOM,
    FORMS,
    MULTIPLY,
    TRITON_DTYPES,
    UNARY,
    Form,
    kind_of,
)
from hotloop.templates.value import Value

if TYPE_CHECKING:
    from hotloop.templates.lower import Lowering


def _write_constant(lowering: Lowering, node: Node) -> Value:
    value = node.attrs["value"]
    kind = kind_of(node.dtype)
    return lowering.operand(Arg(value=float(value) if kind == "float" else value), kind)


def _write_where(lowering: Lowering, node: Node) -> Value:
    kind = kind_of(node.dtype)
    condition = lowering.operand(node.args[0], "bool")
    branches = [lowering.operand(arg, kind) for arg in node.args[1:3]]
    form = Form(text="tl.where({0}, {1}, {2})", kind=kind)
    return replace(lowering.combine(form, [condition, *branches], node.name), kind=kind)


def _write_cast(lowering: Lowering, node: Node) -> Value:
    kind, arg = kind_of(node.dtype), node.args[0]
    source = lowering.nodes[arg.node].dtype if arg.node is not None else node.dtype
    if kind == "bool" or (kind == "float" and kind_of(source) != "float"):
        inner = lowering.operand(arg, kind)
    else:
        inner = lowering.operand(arg, kind_of(source))
    if node.dtype in ("bool", "float32", "float64") or node.dtype == source:
        return inner
    rounded = f"{lowering.text(inner, ATOM)}.to({TRITON_DTYPES[node.dtype]})"
    if kind == "float":  # rounding is part of the problem; arithmetic goes on in float32
        rounded += ".to(tl.float32)"
    return Value(rounded, kind, inner.level)


def _write_pow(lowering: Lowering, node: Node) -> Value:
    base, exponent = node.args
    power, number = lowering.number(exponent), lowering.number(base)
    if number is not None and number > 0 and power is None:
        return _write_exponential(lowering, node, number)
    simple = {2: "square", 0.5: "sqrt", -1: "reciprocal", -0.5: "rsqrt"}
    kind = kind_of(node.dtype)
    if power == 1:
        return lowering.operand(base, kind)
    if power == 3:
        inner = lowering.named(lowering.operand(base, kind), node.name)
        cube = Form(text="{0} * {0} * {0}", binding=MULTIPLY, operands=UNARY)
        return lowering.combine(cube, [inner], node.name)
    if power in simple and (kind == "float" or power == 2):
        as_unary = replace(node, op=simple[power], args=(base,))
        return lowering.pointwise(as_unary, kind)
    form = Form(text="libdevice.pow({0}, {1})")
    return lowering.combine(form, [lowering.operand(a, "float") for a in node.args], node.name)


def _write_exponential(lowering: Lowering, node: Node, base: float) -> Value:
    inner = lowering.operand(node.args[1], "float")
    scaled = replace(inner, coefficient=inner.coefficient * math.log2(base))
    lowering.calls.update(FORMS["exp2"].calls)
    return lowering.combine(FORMS["exp2"], [scaled], node.name)


def _write_floordiv(lowering: Lowering, node: Node) -> Value:
    return _division(lowering, node, "//", "floor_div")


def _write_remainder(lowering: Lowering, node: Node) -> Value:
    return _division(lowering, node, "%", "floor_mod")


def _division(lowering: Lowering, node: Node, symbol: str, function: str) -> Value:
    if kind_of(node.dtype) == "float":
        operands = [lowering.operand(a, "float") for a in node.args]
        if function == "floor_mod":
            form = Form(text="float_mod({0}, {1})", calls=("float_mod",))
        else:
            form = Form(text="tl.floor({0} / {1})", operands=MULTIPLY, right=UNARY)
        return lowering.combine(form, operands, node.name)
    operands = [lowering.operand(a, "int") for a in node.args]
    if lowering.is_nonnegative(node.args[0]) and lowering.is_nonnegative(node.args[1]):
        form = Form(text=f"{{0}} {symbol} {{1}}", binding=MULTIPLY, operands=MULTIPLY, right=UNARY)
    else:
        form = Form(text=f"{function}({{0}}, {{1}})", calls=(function,))
    return lowering.combine(form, operands, node.name)


def _write_clamp(lowering: Lowering, node: Node) -> Value:
    kind = kind_of(node.dtype)
    value = lowering.operand(node.args[0], kind)
    low, high = _clamp_ends(node)
    for function, end in (("tl.maximum", low), ("tl.minimum", high)):
        if end.node is not None or end.value is not None:
            form = Form(text=f"{function}({{0}}, {{1}})")
            value = lowering.combine(form, [value, lowering.operand(end, kind)], node.name)
    return replace(value, kind=kind)


def _clamp_ends(node: Node) -> tuple[Arg, Arg]:
    given = [*node.args[1:], Arg(), Arg()]
    ends = []
    for position, name in enumerate(("min", "max")):
        arg = given[position]
        if arg.node is None and arg.value is None:
            arg = Arg(value=node.attrs.get(name))
        ends.append(arg)
    return ends[0], ends[1]


RULES: dict[str, Callable[[Lowering, Node], Value]] = {
    "constant": _write_constant,
    "where": _write_where,
    "cast": _write_cast,
    "pow": _write_pow,
    "floordiv": _write_floordiv,
    "remainder": _write_remainder,
    "clamp": _write_clamp,
}
"""By operation."""
