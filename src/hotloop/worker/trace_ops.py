"""ATen's pointwise operations in the graph's vocabulary: one rule a line.

Used for score_mod and mask_mod, where nothing else may occur, and for models.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node as FxNode

from hotloop.core.graph import Arg
from hotloop.worker.fx_nodes import NotCovered, kind, meta
from hotloop.worker.lowering import Lowering, Operands, PartialGather, Rule, Value

_SAME_NAME = (
    "neg", "abs", "sign", "exp", "exp2", "log", "log1p", "expm1", "sqrt", "rsqrt", "tanh",
    "sigmoid", "erf", "sin", "cos", "floor", "ceil", "round", "relu", "reciprocal", "square",
    "silu", "hardsigmoid", "hardswish", "mish", "selu",
)  # fmt: skip
_ARITHMETIC = {
    "mul": "mul",
    "multiply": "mul",
    "true_divide": "div",
    "floor_divide": "floordiv",
    "remainder": "remainder",
    "pow": "pow",
    "minimum": "minimum",
    "maximum": "maximum",
}
_COMPARISONS = {
    **{name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
_LOGICAL = {
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_not": "logical_not",
    "logical_xor": "ne",
}
# These are logical on bools; on integers they have no form.
_BITWISE = {
    "bitwise_and": "logical_and",
    "__and__": "logical_and",
    "bitwise_or": "logical_or",
    "__or__": "logical_or",
    "bitwise_xor": "ne",
    "__xor__": "ne",
    "bitwise_not": "logical_not",
}
_ON_BOOLS = {"add": "logical_or", "mul": "logical_and"}
_ATTRIBUTES = {
    "softplus": ("beta", "threshold"),
    "leaky_relu": ("negative_slope",),
}
_IDENTITIES = (
    "detach", "detach_", "alias", "clone", "contiguous", "lift_fresh", "lift_fresh_copy",
    "positive",
)  # fmt: skip
_CONVERSIONS = ("to", "_to_copy", "type_as")
_FILLS = {"zeros": 0, "ones": 1, "full": None}


def arithmetic(lw: Lowering, node: FxNode, op: str, items: tuple[Any, ...]) -> Arg:
    """Write `op` on operands converted to the result's dtype."""
    dtype = lw.dtype(node)
    if kind(dtype) == "bool":
        if op not in _ON_BOOLS:
            raise NotCovered
        op = _ON_BOOLS[op]
    return lw.emit(op, [lw.cast(lw.arg(item, node), dtype, node) for item in items], node)


def _arithmetic(op: str, *names: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        return arithmetic(lw, node, op, tuple(given[n] for n in names))

    return rule


def _comparison(op: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        items = (given["self"], given["other"])
        values = [meta(i) if isinstance(i, FxNode) else i for i in items]
        common = torch.result_type(*values)
        return lw.emit(op, [lw.cast(lw.arg(i, node), common, node) for i in items], node)

    return rule


def _logical(op: str, *, bools_only: bool) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        items = [given[n] for n in ("self", "other") if n in given]
        if bools_only and kind(lw.dtype(node)) != "bool":
            raise NotCovered
        return lw.emit(op, [lw.cast(lw.arg(i, node), torch.bool, node) for i in items], node)

    return rule


def _with_attributes(op: str, names: tuple[str, ...]) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        attrs = {name: given[name] for name in names}
        return lw.emit(op, [lw.arg(given["self"], node)], node, attrs=attrs)

    return rule


def _scaled(lw: Lowering, node: FxNode, item: Any, alpha: Any) -> Any:
    """Return the argument of `alpha * item`, the second operand of add and sub."""
    arg = lw.cast(lw.arg(item, node), lw.dtype(node), node)
    if alpha == 1:
        return arg
    if arg.node is None:
        return Arg(value=arg.value * alpha)
    return lw.emit("mul", [arg, lw.scalar(alpha, node)], node)


def _add(op: str, *, reverse: bool = False) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        first, second = given["self"], given["other"]
        if reverse:
            first, second = second, first
        if kind(lw.dtype(node)) == "bool":
            return arithmetic(lw, node, op, (first, second))
        left = lw.cast(lw.arg(first, node), lw.dtype(node), node)
        return lw.emit(op, [left, _scaled(lw, node, second, given.get("alpha", 1))], node)

    return rule


def _extremum(op: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        if "other" not in given:
            raise NotCovered
        return arithmetic(lw, node, op, (given["self"], given["other"]))

    return rule


def _div(lw: Lowering, node: FxNode, given: Operands) -> Value:
    mode = given.get("rounding_mode")
    if mode == "trunc":
        raise NotCovered
    op = "floordiv" if mode == "floor" else "div"
    return arithmetic(lw, node, op, (given["self"], given["other"]))


def _where(lw: Lowering, node: FxNode, given: Operands) -> Value:
    if "self" not in given:  # where(condition) lists indices
        raise NotCovered
    return _select(lw, node, given["condition"], given["self"], given["other"])


def _masked_fill(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return _select(lw, node, given["mask"], given["value"], given["self"])


def _select(lw: Lowering, node: FxNode, condition: Any, yes: Any, no: Any) -> Arg:
    dtype = lw.dtype(node)
    args = [lw.cast(lw.arg(item, node), dtype, node) for item in (yes, no)]
    return lw.emit("where", [lw.cast(lw.arg(condition, node), torch.bool, node), *args], node)


def _clamp(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return _clamped(lw, node, (given["self"], given.get("min"), given.get("max")))


def _hardtanh(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return _clamped(lw, node, (given["self"], given["min_val"], given["max_val"]))


def _relu6(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return _clamped(lw, node, (given["self"], 0, 6))


def _clamped(lw: Lowering, node: FxNode, items: tuple[Any, ...]) -> Arg:
    return lw.emit("clamp", [lw.cast(lw.arg(i, node), lw.dtype(node), node) for i in items], node)


def _gelu(lw: Lowering, node: FxNode, given: Operands) -> Value:
    op = "gelu_tanh" if given["approximate"] == "tanh" else "gelu_erf"
    return arithmetic(lw, node, op, (given["self"],))


def _elu(lw: Lowering, node: FxNode, given: Operands) -> Value:
    if given["scale"] != 1 or given["input_scale"] != 1:
        raise NotCovered
    return lw.emit("elu", [lw.arg(given["self"], node)], node, attrs={"alpha": given["alpha"]})


def _identity(lw: Lowering, node: FxNode, given: Operands) -> Value:
    return lw.value(next(iter(given.values())))


def _convert(lw: Lowering, node: FxNode, given: Operands) -> Value:
    arg = lw.arg(given["self"], node)
    if arg.node is None:
        raise NotCovered
    return lw.cast(arg, lw.dtype(node), node)


def _fill(name: str) -> Rule:
    def rule(lw: Lowering, node: FxNode, given: Operands) -> Value:
        value = given["fill_value"] if _FILLS[name] is None else _FILLS[name]
        dtype = lw.dtype(node)
        if isinstance(value, FxNode):
            raise NotCovered
        value = {"bool": bool, "int": int, "float": float}[kind(dtype)](value)
        finite = isinstance(lw.scalar(value, node).value, (bool, int, float))
        attrs = {"value": value if finite else str(value)}
        return lw.emit("constant", (), node, attrs=attrs)

    return rule


def _scalar_tensor(lw: Lowering, node: FxNode, given: Operands) -> Value:
    if isinstance(given["s"], FxNode):
        raise NotCovered
    return lw.emit("constant", (), node, attrs={"value": given["s"]})


def _index(lw: Lowering, node: FxNode, given: Operands) -> Value:
    """`table[i, j]`: with the indices so far, a gather or still a part of one."""
    table = lw.value(given["self"])
    if not isinstance(table, PartialGather) or any(i is None for i in given["indices"]):
        raise NotCovered
    if any(meta(i).shape != () for i in given["indices"]):
        raise NotCovered
    more = tuple(lw.arg(i, node) for i in given["indices"])
    return _indexed(lw, node, table, more)


def _select_int(lw: Lowering, node: FxNode, given: Operands) -> Value:
    """`table[2]`: a number as an index; only of the first dimension that is left."""
    table = lw.value(given["self"])
    if not isinstance(table, PartialGather) or given["dim"] != 0:
        raise NotCovered
    size = meta(given["self"]).shape[0]
    return _indexed(lw, node, table, (Arg(value=given["index"] % size),))


def _indexed(
    lw: Lowering, node: FxNode, table: PartialGather, more: tuple[Arg, ...]
) -> PartialGather | Arg:
    partial = PartialGather(table.buffer, (*table.indices, *more))
    whole = len(partial.indices) == len(lw.node(table.buffer).shape)
    return lw.gather(partial, node) if whole else partial


POINTWISE_RULES: dict[str, Rule] = {
    **{name: _arithmetic(name, "self") for name in _SAME_NAME},
    **{name: _arithmetic(op, "self", "other") for name, op in _ARITHMETIC.items()},
    "pow": _arithmetic("pow", "self", "exponent"),
    **{name: _comparison(op) for name, op in _COMPARISONS.items()},
    **{name: _logical(op, bools_only=False) for name, op in _LOGICAL.items()},
    **{name: _logical(op, bools_only=True) for name, op in _BITWISE.items()},
    **{name: _with_attributes(name, attrs) for name, attrs in _ATTRIBUTES.items()},
    "add": _add("add"),
    "sub": _add("sub"),
    "subtract": _add("sub"),
    "rsub": _add("sub", reverse=True),
    "min": _extremum("minimum"),
    "max": _extremum("maximum"),
    "div": _div,
    "divide": _div,
    "where": _where,
    "masked_fill": _masked_fill,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "clip": _clamp,
    "gelu": _gelu,
    "elu": _elu,
    "hardtanh": _hardtanh,
    "relu6": _relu6,
    **{name: _identity for name in _IDENTITIES},
    **{name: _convert for name in _CONVERSIONS},
    **{
        f"{form}{name}{like}": _fill(name)
        for name in _FILLS
        for form, like in (("", ""), ("", "_like"), ("new_", ""))
    },
    "scalar_tensor": _scalar_tensor,
    "index": _index,
    "select": _select_int,
}
"""By ATen name without overload."""
