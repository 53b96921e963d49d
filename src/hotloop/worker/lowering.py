"""Turn a traced fx graph into a `core.graph.Graph`.

`Lowering` walks the nodes, keeps what each became, and writes graph nodes; what each ATen operation
becomes is in the tables of `trace_ops.py` (pointwise) and `trace_model_ops.py` (the rest).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from hotloop.core.graph import Arg, Graph, Node
from hotloop.errors import UnsupportedOp
from hotloop.worker.fx_nodes import (
    NotCovered,
    aten_name,
    dtype_name,
    kind,
    may_share_memory,
    meta,
    operands,
)
from hotloop.worker.tracing import line_of


class PartialGather(NamedTuple):
    """A buffer that some, not yet all, of its dimensions were indexed away from."""

    buffer: Arg
    indices: tuple[Arg, ...]


Value = Arg | PartialGather | tuple[Arg, ...] | None
"""What a traced operation became: an argument, several outputs, or nothing."""
Operands = Mapping[str, Any]
"""Arguments of an ATen call by the names of its schema, defaults included."""
Rule = Callable[["Lowering", FxNode, Operands], "Value"]
"""Writes one ATen operation. Raises `NotCovered` when it has no form in the vocabulary."""


class Lowering:
    """One walk over one traced graph."""

    def __init__(
        self, module: GraphModule, rules: Mapping[str, Rule], *, name: str, opaque: bool
    ) -> None:
        """Prepare the walk.

        Args:
            module: The trace.
            rules: What to write, by ATen name without overload (`add`, `where`).
            name: What is traced; error messages start with it.
            opaque: Whether operations without a rule become `opaque` nodes instead of an error.
        """
        self.module = module
        self.name = name
        self._rules = rules
        self._opaque = opaque
        self._values: dict[FxNode, Value] = {}
        self._nodes: dict[str, Node] = {}
        self._leaves: dict[tuple[str, Any], Arg] = {}

    # -- reading ------------------------------------------------------------------------------

    def bind(self, node: FxNode, value: Value) -> None:
        """Say what a traced node is."""
        self._values[node] = value

    def value(self, item: Any) -> Value:
        """Return what a traced node became; for a scalar, the scalar as an argument."""
        return self._values[item] if isinstance(item, FxNode) else Arg(value=item)

    def arg(self, item: Any, at: FxNode) -> Arg:
        """Return a traced node or scalar as one argument.

        Raises:
            UnsupportedOp: it is a table that was not indexed down to one value.
        """
        value = self.value(item)
        if isinstance(value, PartialGather):
            buffer = self.node(value.buffer)
            if len(value.indices) == len(buffer.shape):
                return self.gather(value, at)
            raise self.unsupported(
                at,
                f"captured tensor {buffer.attrs['name']!r} has {len(buffer.shape)} dimensions "
                f"and is indexed by {len(value.indices)}; index each of them",
            )
        if isinstance(value, Arg):
            return value if value.node is not None else self.scalar(value.value, at)
        raise NotCovered

    def node(self, arg: Arg) -> Node:
        """Return the node that an argument refers to."""
        if arg.node is None:
            raise KeyError("a scalar is no node")
        return self._nodes[arg.node]

    def dtype(self, at: FxNode) -> torch.dtype:
        """Return the dtype of a traced operation's result."""
        return meta(at).dtype

    # -- writing ------------------------------------------------------------------------------

    def emit(
        self,
        op: str,
        args: Sequence[Arg],
        at: FxNode,
        *,
        attrs: Mapping[str, Any] | None = None,
        like: torch.Tensor | None = None,
    ) -> Arg:
        """Write one node; shape and dtype are those of `like`, by default of the traced result."""
        tensor = meta(at) if like is None else like
        name = f"{op}_{sum(n.op == op for n in self._nodes.values())}"
        self._nodes[name] = Node(
            name=name,
            op=op,
            args=tuple(args),
            attrs=dict(attrs or {}),
            shape=tuple(int(s) for s in tensor.shape),
            dtype=dtype_name(tensor.dtype),
            line=line_of(at),
        )
        return Arg(node=name)

    def leaf(self, op: str, at: FxNode, *, attrs: Mapping[str, Any] | None = None) -> Arg:
        """Write a leaf, once for each op and attributes."""
        key = (op, tuple(sorted((attrs or {}).items())))
        if key not in self._leaves:
            self._leaves[key] = self.emit(op, (), at, attrs=attrs)
        return self._leaves[key]

    def scalar(self, value: Any, at: FxNode) -> Arg:
        """Return a Python scalar as an argument; what JSON has not becomes a constant node."""
        if isinstance(value, float) and not math.isfinite(value):
            like = torch.empty((), dtype=self.dtype(at) if meta(at).is_floating_point() else None)
            return self.emit("constant", (), at, attrs={"value": str(value)}, like=like)
        if value is None or isinstance(value, (bool, int, float)):
            return Arg(value=value)
        raise NotCovered

    def tensor_constant(self, tensor: torch.Tensor, at: FxNode) -> Arg:
        """Write a tensor that the code itself holds: a number as a constant, else opaque."""
        if tensor.ndim or tensor.is_meta:
            attrs = {"target": "tensor", "arguments": []}
            return self.emit("opaque", (), at, attrs=attrs, like=tensor)
        value = tensor.item()
        if isinstance(value, float) and not math.isfinite(value):
            value = str(value)
        return self.emit("constant", (), at, attrs={"value": value}, like=tensor)

    def cast(self, arg: Arg, dtype: torch.dtype, at: FxNode) -> Arg:
        """Convert an argument where kind or float width differ; scalars stay."""
        if arg.node is None:
            return arg
        node = self._nodes[arg.node]
        own = getattr(torch, node.dtype)
        if own == dtype or kind(own) == kind(dtype) == "int":
            return arg
        like = torch.empty(node.shape, dtype=dtype, device="meta")
        return self.emit("cast", (arg,), at, attrs={"dtype": dtype_name(dtype)}, like=like)

    def gather(self, partial: PartialGather, at: FxNode) -> Arg:
        """Write the read of one value of a captured tensor."""
        like = torch.empty((), dtype=getattr(torch, self.node(partial.buffer).dtype))
        return self.emit("gather", (partial.buffer, *partial.indices), at, like=like)

    # -- the walk -----------------------------------------------------------------------------

    def run(self) -> Graph:
        """Lower all nodes that were not bound before, and return the graph.

        Raises:
            UnsupportedOp: an operation has no rule, and opaque nodes are not wanted.
        """
        outputs: tuple[str, ...] = ()
        for node in self.module.graph.nodes:
            if node.op == "output":
                outputs = self._outputs(node)
            elif node.op == "call_function" and node not in self._values:
                self._values[node] = self._call(node)
        return prune(Graph(nodes=tuple(self._nodes.values()), outputs=outputs))

    def _outputs(self, node: FxNode) -> tuple[str, ...]:
        names = []
        flat, _ = torch.utils._pytree.tree_flatten(node.args[0])
        for item in flat:
            at = item if isinstance(item, FxNode) else node
            arg = self.arg(item, at)
            if arg.node is None:
                like = torch.tensor(arg.value)
                arg = self.emit("constant", (), at, attrs={"value": arg.value}, like=like)
            names.append(str(arg.node))
        return tuple(names)

    def _call(self, node: FxNode) -> Value:
        if node.target is operator.getitem:
            whole = self.value(node.args[0])
            if isinstance(whole, tuple):
                return whole[int(node.args[1])]
        if not isinstance(node.target, torch._ops.OpOverload):
            return self._without_rule(node) if node.users else None
        name = aten_name(node.target)
        if node.target._schema.is_mutable and name not in self._rules:
            return self._mutate(node, name.removesuffix("_"))
        return self._apply(node, name)

    def _apply(self, node: FxNode, name: str) -> Value:
        rule = self._rules.get(name)
        if rule is None:
            return self._without_rule(node)
        try:
            return rule(self, node, operands(node))
        except NotCovered:
            return self._without_rule(node)

    def _mutate(self, node: FxNode, name: str) -> Value:
        """Lower an in-place operation as the plain one; later readers see its result."""
        changed = node.args[0]
        if not isinstance(changed, FxNode) or may_share_memory(changed):
            raise self.unsupported(node, "it changes a tensor that other tensors may be views of")
        value = self._apply(node, name)
        self._values[changed] = value
        return value

    def _without_rule(self, node: FxNode) -> Arg:
        if not self._opaque:
            raise self.unsupported(node, "it is not among the operations that kernels are built of")
        flat, _ = torch.utils._pytree.tree_flatten((node.args, node.kwargs))
        args = [v for i in flat if isinstance(i, FxNode) and isinstance(v := self.value(i), Arg)]
        attrs = {
            "target": str(getattr(node.target, "__name__", node.target))
            if node.target is operator.getitem
            else str(node.target),
            "arguments": [str(i) for i in flat if not isinstance(i, FxNode)],
        }
        return self.emit("opaque", args, node, attrs=attrs)

    def unsupported(self, node: FxNode, why: str) -> UnsupportedOp:
        """Return the error that names an operation and its line."""
        line = line_of(node)
        where = f"{self.name} line {line}" if line is not None else self.name
        target = node.target if node.op == "call_function" else node.op
        return UnsupportedOp(f"{where}: {target} cannot be lowered: {why}")


def prune(graph: Graph) -> Graph:
    """Return the graph without nodes that no output needs."""
    needed = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node.name in needed:
            needed |= {a.node for a in node.args if a.node is not None}
    return Graph(nodes=tuple(n for n in graph.nodes if n.name in needed), outputs=graph.outputs)
