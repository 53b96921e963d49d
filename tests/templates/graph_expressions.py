"""Build a score_mod or mask_mod as a graph and, beside it, as a numpy function in float64.

Every expression carries both: the name of its node and how to compute it from the indices. So a
test compares generated code with something that was written down independently of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hotloop.core.graph import Arg, AttentionSpec, BufferSpec, Graph, Node

Array = Any
Function = Callable[[Mapping[str, Array]], Array]

_NUMPY: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floordiv": np.floor_divide,
    "remainder": np.mod,
    "pow": np.power,
    "neg": np.negative,
    "abs": np.abs,
    "square": np.square,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "exp": np.exp,
    "exp2": np.exp2,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "relu": lambda x: np.maximum(x, 0),
    "minimum": np.minimum,
    "maximum": np.maximum,
    "where": np.where,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
}
_LEAVES = ("score", "index_b", "index_h", "index_q", "index_kv")


class Expression:
    """A node of a graph that is being built, and its value."""

    def __init__(self, builder: Builder, node: str | None, dtype: str, compute: Function) -> None:
        self.builder, self.node, self.dtype, self.compute = builder, node, dtype, compute

    def _binary(self, op: str, other: Any, *, reverse: bool = False) -> Expression:
        pair = (self.builder.lift(other), self) if reverse else (self, self.builder.lift(other))
        return self.builder.apply(op, *pair)

    def __add__(self, o: Any) -> Expression:
        return self._binary("add", o)

    def __radd__(self, o: Any) -> Expression:
        return self._binary("add", o, reverse=True)

    def __sub__(self, o: Any) -> Expression:
        return self._binary("sub", o)

    def __rsub__(self, o: Any) -> Expression:
        return self._binary("sub", o, reverse=True)

    def __mul__(self, o: Any) -> Expression:
        return self._binary("mul", o)

    def __rmul__(self, o: Any) -> Expression:
        return self._binary("mul", o, reverse=True)

    def __truediv__(self, o: Any) -> Expression:
        return self._binary("div", o)

    def __floordiv__(self, o: Any) -> Expression:
        return self._binary("floordiv", o)

    def __mod__(self, o: Any) -> Expression:
        return self._binary("remainder", o)

    def __rpow__(self, o: Any) -> Expression:
        return self._binary("pow", o, reverse=True)

    def __neg__(self) -> Expression:
        return self.builder.apply("neg", self)

    def __invert__(self) -> Expression:
        return self.builder.apply("logical_not", self)

    def __and__(self, o: Any) -> Expression:
        return self._binary("logical_and", o)

    def __or__(self, o: Any) -> Expression:
        return self._binary("logical_or", o)

    def __le__(self, o: Any) -> Expression:
        return self._binary("le", o)

    def __lt__(self, o: Any) -> Expression:
        return self._binary("lt", o)

    def __ge__(self, o: Any) -> Expression:
        return self._binary("ge", o)

    def __gt__(self, o: Any) -> Expression:
        return self._binary("gt", o)

    def equals(self, o: Any) -> Expression:
        return self._binary("eq", o)

    def differs(self, o: Any) -> Expression:
        return self._binary("ne", o)


class Builder:
    """Collects the nodes of one score_mod or mask_mod."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.buffers: dict[str, BufferSpec] = {}
        self.score, self.b, self.h, self.q, self.kv = (self._leaf(op) for op in _LEAVES)

    def _leaf(self, op: str) -> Expression:
        dtype = "float32" if op == "score" else "int32"
        self.nodes.append(Node(name=f"{op}_0", op=op, dtype=dtype))
        return Expression(self, f"{op}_0", dtype, lambda env: env[op])

    def lift(self, value: Any) -> Expression:
        """Return a number as an expression without a node."""
        if isinstance(value, Expression):
            return value
        dtype = {bool: "bool", int: "int32", float: "float32"}[type(value)]
        expression = Expression(self, None, dtype, lambda env: value)
        expression.value = value  # type: ignore[attr-defined]
        return expression

    def apply(self, op: str, *operands: Any) -> Expression:
        """Add a node and return it; numbers among the operands stay literals."""
        args = [self.lift(o) for o in operands]
        dtypes = [a.dtype for a in args]
        if op in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not"):
            dtype = "bool"
        elif op == "where":
            dtype = "float32" if "float32" in dtypes[1:] else dtypes[1]
        elif "float32" in dtypes or op in ("div", "tanh", "sigmoid", "exp", "exp2", "sin", "sqrt"):
            dtype = "float32"
        else:
            dtype = "int32"
        name = f"{op}_{sum(n.op == op for n in self.nodes)}"
        arg_nodes = tuple(
            Arg(node=a.node) if a.node else Arg(value=getattr(a, "value", None)) for a in args
        )
        self.nodes.append(Node(name=name, op=op, args=arg_nodes, dtype=dtype, line=7))
        function = _NUMPY[op]
        return Expression(self, name, dtype, lambda env: function(*(a.compute(env) for a in args)))

    def read(self, name: str, shape: tuple[int, ...], dtype: str, *index: Any) -> Expression:
        """Add a gather from buffer `name`."""
        if name not in self.buffers:
            self.buffers[name] = BufferSpec(name=name, shape=shape, dtype=dtype)
            node = Node(name=f"buffer_{name}", op="buffer", attrs={"name": name}, dtype=dtype)
            self.nodes.append(node)
        at = [self.lift(i) for i in index]
        node_name = f"gather_{sum(n.op == 'gather' for n in self.nodes)}"
        args = [Arg(node=f"buffer_{name}")]
        args += [Arg(node=a.node) if a.node else Arg(value=getattr(a, "value", None)) for a in at]
        self.nodes.append(Node(name=node_name, op="gather", args=tuple(args), dtype=dtype))
        return Expression(
            self, node_name, dtype, lambda env: env[name][tuple(a.compute(env) for a in at)]
        )

    def graph(self, output: Expression) -> Graph:
        """Return the graph that computes `output`."""
        assert output.node is not None
        return Graph(nodes=tuple(self.nodes), outputs=(output.node,))


def make_spec(
    *,
    score: Expression | None = None,
    mask: Expression | None = None,
    B: int = 1,
    H: int = 2,
    S: int = 128,
    D: int = 32,
    **sizes: Any,
) -> AttentionSpec:
    """Return an attention problem with the given modifications."""
    buffers: dict[str, BufferSpec] = {}
    for part in (score, mask):
        if part is not None:
            buffers.update(part.builder.buffers)
    return AttentionSpec(
        B=B,
        H=H,
        Hkv=sizes.get("Hkv", H),
        S=S,
        Skv=sizes.get("Skv", S),
        D=D,
        dtype=sizes.get("dtype", "float32"),
        scale=sizes.get("scale", D**-0.5),
        normalize=sizes.get("normalize", "softmax"),
        score_mod=None if score is None else score.builder.graph(score),
        mask_mod=None if mask is None else mask.builder.graph(mask),
        buffers=tuple(buffers.values()),
    )


def positions(spec: AttentionSpec) -> dict[str, Array]:
    """Return all indices of a problem as integer arrays that broadcast to (B, H, S, Skv)."""
    return {
        "index_b": np.arange(spec.B).reshape(-1, 1, 1, 1),
        "index_h": np.arange(spec.H).reshape(1, -1, 1, 1),
        "index_q": np.arange(spec.S).reshape(1, 1, -1, 1),
        "index_kv": np.arange(spec.Skv).reshape(1, 1, 1, -1),
    }
