"""What can be said of a score_mod or mask_mod without running it.

For every node of a scalar graph: which of batch, head, query, key and score it depends on, and an
interval that holds its values. Lowering uses the first to compute each value as rarely as possible,
and the second to choose number formats; `attention` decides by both which tiles and terms can go.
No text is made here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hotloop.core.graph import Arg, AttentionSpec, Graph, Node
from hotloop.errors import UnsupportedOp

LEAF_AXES = {
    "index_b": "batch",
    "index_h": "head",
    "index_q": "query",
    "index_kv": "key",
    "score": "score",
}
"""Graph leaves and the axis that each stands for."""

PROGRAM_AXES = frozenset({"batch", "head"})
"""Axes that are fixed within one program: values that depend on no other are scalars there."""

FLOAT32_EXACT = 2**24
"""Integers up to this magnitude are exact in float32."""


class Interval(NamedTuple):
    """A closed interval; infinite ends mean unknown."""

    low: float
    high: float

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))


UNKNOWN = Interval(-math.inf, math.inf)


class ScalarGraph:
    """A score_mod or mask_mod with the axes and the interval of every node."""

    def __init__(self, graph: Graph, spec: AttentionSpec) -> None:
        self.graph = graph
        self.output = graph.outputs[0]
        self.node: dict[str, Node] = {n.name: n for n in graph.nodes}
        self.axes: dict[str, frozenset[str]] = {}
        self.interval: dict[str, Interval] = {}
        sizes = {"index_b": spec.B, "index_h": spec.H, "index_q": spec.S, "index_kv": spec.Skv}
        for node in graph.nodes:
            self.axes[node.name] = self._axes_of(node)
            self.interval[node.name] = self._interval_of(node, sizes)

    def _axes_of(self, node: Node) -> frozenset[str]:
        if node.op in LEAF_AXES:
            return frozenset({LEAF_AXES[node.op]})
        return frozenset().union(*(self.axes[a.node] for a in node.args if a.node is not None))

    def _interval_of(self, node: Node, sizes: Mapping[str, int]) -> Interval:
        if node.op in sizes:
            return Interval(0, sizes[node.op] - 1)
        if node.op == "constant":
            value = float(node.attrs["value"])
            return Interval(value, value)
        rule = _INTERVAL_RULES.get(node.op)
        if rule is None or node.op == "score":
            return Interval(0, 1) if node.dtype == "bool" else UNKNOWN
        bounds = [self.interval_of(arg) for arg in node.args]
        result = rule(*bounds)
        if math.isnan(result.low) or math.isnan(result.high):
            return UNKNOWN
        if node.op == "cast" and node.dtype.startswith("int"):
            return Interval(_round_out(result.low, math.floor), _round_out(result.high, math.ceil))
        return result

    def interval_of(self, arg: Arg) -> Interval:
        """Return the interval of an argument."""
        if arg.node is not None:
            return self.interval[arg.node]
        if arg.value is None:
            return UNKNOWN
        return Interval(float(arg.value), float(arg.value))

    def axes_of(self, arg: Arg) -> frozenset[str]:
        """Return the axes of an argument; a literal has none."""
        return frozenset() if arg.node is None else self.axes[arg.node]

    def is_program_scalar(self, arg: Arg) -> bool:
        """Whether `arg` is one number for the whole program."""
        return self.axes_of(arg) <= PROGRAM_AXES

    def constant(self, arg: Arg) -> float | int | bool | None:
        """Return the value of a literal or a constant node; None for anything else."""
        if arg.node is None:
            return arg.value
        node = self.node[arg.node]
        if node.op == "constant":
            value: float | int | bool | str = node.attrs["value"]
            return float(value) if isinstance(value, str) else value  # "inf": JSON has none
        if node.op == "cast" and node.dtype.startswith("float"):
            return self.constant(node.args[0])
        return None

    def is_finite(self, name: str) -> bool:
        """Whether node `name` is finite whenever the score is."""
        node, interval = self.node[name], self.interval[name]
        is_float = node.dtype.startswith(("float", "bfloat"))
        if node.op == "score" or not is_float or math.isfinite(interval.magnitude):
            return True
        if node.op == "div" and self.interval_of(node.args[1]).low <= 0:
            return False
        if node.op not in _KEEP_FINITE:
            return False
        return all(a.node is None or self.is_finite(a.node) for a in node.args)

    def check(self, known: Mapping[str, object] | frozenset[str]) -> None:
        """Refuse operations outside `known`.

        Raises:
            UnsupportedOp: names the first such operation and its line.
        """
        for node in self.graph.nodes:
            if node.op not in known:
                raise unsupported(node, "no attention template lowers it")


def unsupported(node: Node, why: str) -> UnsupportedOp:
    """Return the error that names `node`'s operation and its line."""
    name = node.attrs.get("target", node.op)
    where = "" if node.line is None else f" (line {node.line})"
    return UnsupportedOp(
        f"operation {name!r}{where}: {why}; rewrite it with supported operations or use a model"
    )


def _power(base: Interval, exponent: Interval) -> Interval:
    if base.low <= 0 or not math.isfinite(base.high):
        return UNKNOWN
    try:
        return _corners(lambda x, y: x**y)(base, exponent)
    except OverflowError:
        return UNKNOWN


_KEEP_FINITE = frozenset(
    {"add", "sub", "mul", "div", "neg", "abs", "square", "minimum", "maximum", "clamp", "where"}
    | {"cast", "floor", "ceil", "round", "sin", "cos", "relu", "silu", "gelu_erf", "gelu_tanh"}
    | {"softplus", "elu", "leaky_relu", "selu", "hardswish", "mish"}
)
"""Operations with finite results for finite operands; divisors that may be 0 are refused."""


def _round_out(value: float, function: Callable[[float], int]) -> float:
    return function(value) if math.isfinite(value) else value


def _corners(
    operation: Callable[[float, float], float],
) -> Callable[[Interval, Interval], Interval]:
    def rule(a: Interval, b: Interval) -> Interval:
        values = [operation(x, y) for x in a for y in b]
        return Interval(min(values), max(values))

    return rule


def _multiply(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def _divide(a: Interval, b: Interval) -> Interval:
    if b.low <= 0 <= b.high:
        return UNKNOWN
    return _corners(_multiply)(a, Interval(1 / b.high, 1 / b.low))


def _floor_divide(a: Interval, b: Interval) -> Interval:
    exact = _divide(a, b)
    if not (math.isfinite(exact.low) and math.isfinite(exact.high)):
        return UNKNOWN
    return Interval(math.floor(exact.low), math.floor(exact.high))


def _remainder(a: Interval, b: Interval) -> Interval:
    if b.low <= 0 or not math.isfinite(b.high):
        return UNKNOWN
    if a.low >= 0 and a.high < b.low:
        return a
    return Interval(0, b.high)


def _absolute(a: Interval) -> Interval:
    low = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return Interval(low, a.magnitude)


def _monotone(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    def rule(a: Interval) -> Interval:
        try:
            return Interval(function(a.low), function(a.high))
        except (OverflowError, ValueError):
            return UNKNOWN

    return rule


def _clamp(a: Interval, low: Interval, high: Interval) -> Interval:
    floor = -math.inf if low == UNKNOWN else low.low
    roof = math.inf if high == UNKNOWN else high.high
    return Interval(min(max(a.low, floor), roof), max(min(a.high, roof), floor))


def _square(a: Interval) -> Interval:
    positive = _absolute(a)
    return Interval(_multiply(positive.low, positive.low), _multiply(positive.high, positive.high))


_INTERVAL_RULES: dict[str, Callable[..., Interval]] = {
    "add": lambda a, b: Interval(a.low + b.low, a.high + b.high),
    "sub": lambda a, b: Interval(a.low - b.high, a.high - b.low),
    "mul": _corners(_multiply),
    "div": _divide,
    "floordiv": _floor_divide,
    "remainder": _remainder,
    "pow": _power,
    "neg": lambda a: Interval(-a.high, -a.low),
    "abs": _absolute,
    "square": _square,
    "minimum": lambda a, b: Interval(min(a.low, b.low), min(a.high, b.high)),
    "maximum": lambda a, b: Interval(max(a.low, b.low), max(a.high, b.high)),
    "clamp": _clamp,
    "where": lambda _c, a, b: Interval(min(a.low, b.low), max(a.high, b.high)),
    "relu": _monotone(lambda x: max(x, 0.0)),
    "exp": _monotone(math.exp),
    "exp2": _monotone(lambda x: 2.0**x),
    "tanh": _monotone(math.tanh),
    "erf": _monotone(math.erf),
    "sigmoid": lambda _a: Interval(0.0, 1.0),
    "hardsigmoid": lambda _a: Interval(0.0, 1.0),
    "softsign": lambda _a: Interval(-1.0, 1.0),
    "sin": lambda _a: Interval(-1.0, 1.0),
    "cos": lambda _a: Interval(-1.0, 1.0),
    "sign": lambda _a: Interval(-1.0, 1.0),
    "floor": _monotone(lambda x: _round_out(x, math.floor)),
    "ceil": _monotone(lambda x: _round_out(x, math.ceil)),
    "cast": lambda a: a,
}
