"""Build op graphs of small models, as the judge traces them."""

from __future__ import annotations

from typing import Any

from hotloop.core.graph import Arg, Graph, Node


class ModelBuilder:
    """Collects the nodes of one model graph."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def _add(self, op: str, args: tuple[Arg, ...], shape: tuple[int, ...], **more: Any) -> Node:
        node = Node(
            name=f"{op}_{sum(n.op == op for n in self.nodes)}",
            op=op,
            args=args,
            shape=tuple(shape),
            dtype=more.pop("dtype", "float32"),
            attrs=more.pop("attrs", {}),
            line=more.pop("line", 3),
        )
        self.nodes.append(node)
        return node

    def input(self, index: int, *shape: int, dtype: str = "float32") -> Node:
        return self._add("input", (), shape, dtype=dtype, attrs={"index": index})

    def parameter(self, name: str, *shape: int, dtype: str = "float32") -> Node:
        return self._add("parameter", (), shape, dtype=dtype, attrs={"name": name})

    def apply(
        self, op: str, *operands: Any, shape: tuple[int, ...] | None = None, **more: Any
    ) -> Node:
        """Add an operation; the shape is the first operand's unless given."""
        args = tuple(Arg(node=o.name) if isinstance(o, Node) else Arg(value=o) for o in operands)
        dtype = more.pop("dtype", operands[0].dtype)
        shape = operands[0].shape if shape is None else shape
        return self._add(op, args, shape, dtype=dtype, attrs=more)

    def reduce(self, op: str, x: Node, *dims: int, keepdim: bool = False, **more: Any) -> Node:
        kept = tuple(1 if d in dims else n for d, n in enumerate(x.shape))
        shape = kept if keepdim else tuple(n for d, n in enumerate(x.shape) if d not in dims)
        return self.apply(op, x, shape=shape, dims=list(dims), keepdim=keepdim, **more)

    def graph(self, *outputs: Node) -> Graph:
        return Graph(nodes=tuple(self.nodes), outputs=tuple(o.name for o in outputs))
