"""What a matrix-product problem is: one product of tensors at hand, then pointwise work on it.

Operands and addends are inputs or parameters, possibly transposed or expanded: views, no copies.
The product is (batch, M, K) @ (batch, K, N); leading dimensions of the left operand go into M where
the right one has none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hotloop.core.graph import Arg, Graph, Node
from hotloop.errors import UnsupportedOp
from hotloop.templates.analysis import unsupported
from hotloop.templates.operators import POINTWISE
from hotloop.templates.tensor_view import LEAVES, SHAPE_OPS, View, leaf_views

PRODUCTS = ("matmul", "linear")
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Operand:
    """One factor: its leaf and the strides of batch, row and column, in elements."""

    leaf: str
    batch_stride: int
    row_stride: int
    column_stride: int


@dataclass(frozen=True)
class MatmulProblem:
    """A graph around one product."""

    graph: Graph
    """With `linear`'s bias as an addition."""
    product: Node
    a: Operand
    b: Operand
    batch: int
    M: int
    N: int
    K: int
    views: dict[str, View] = field(repr=False)
    """Leaves of the epilogue, broadcast to the product's shape."""
    allows_tf32: bool = False
    """Whether the policy lets a float32 product round its operands to TF32."""

    @classmethod
    def of(cls, graph: Graph, *, allows_tf32: bool = False) -> MatmulProblem:
        """Analyse `graph`.

        Raises:
            UnsupportedOp: it is no single product with an epilogue; names the operation.
        """
        graph = _with_plain_bias(graph)
        products = [n for n in graph.nodes if n.op in PRODUCTS]
        if len(products) != 1:
            raise UnsupportedOp(f"expected one matrix product, the graph has {len(products)}")
        product = products[0]
        views = leaf_views(graph.nodes)
        factors = []
        for arg in product.args[:2]:
            if arg.node not in views:
                raise unsupported(product, "an operand is computed, not given")
            factors.append(views[str(arg.node)])
        if product.op == "linear":
            w = factors[1]
            factors[1] = View(w.leaf, w.shape[::-1], w.strides[::-1])
        if graph.node(factors[0].leaf).dtype not in DTYPES:
            raise unsupported(product, f"expected operands of {', '.join(DTYPES)}")
        sizes = _sizes(product, *factors)
        addends = _epilogue_views(graph, product, views)
        return cls(graph, product, *sizes, addends, allows_tf32)

    @property
    def dtype(self) -> str:
        """Dtype of the operands."""
        return self.graph.node(self.a.leaf).dtype

    @property
    def output(self) -> Node:
        """The node that is returned."""
        return self.graph.node(self.graph.outputs[0])


def _with_plain_bias(graph: Graph) -> Graph:
    """Turn linear(x, w, bias) into linear(x, w) + bias."""
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op != "linear" or len(node.args) < 3:
            nodes.append(node)
            continue
        name = f"{node.name}_product"
        nodes.append(
            Node(
                name=name, op="linear", args=node.args[:2], shape=node.shape, dtype=node.dtype,
                line=node.line,
            )
        )  # fmt: skip
        nodes.append(
            Node(
                name=node.name, op="add", args=(Arg(node=name), node.args[2]), shape=node.shape,
                dtype=node.dtype, line=node.line,
            )
        )  # fmt: skip
    return Graph(nodes=tuple(nodes), outputs=graph.outputs)


def _sizes(product: Node, a: View, b: View) -> tuple[Operand, Operand, int, int, int, int]:
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise unsupported(product, "an operand is a vector")
    K, N = b.shape[-2:]
    lead = product.shape[:-2]
    if math.prod(b.shape[:-2]) == 1:  # one right operand: all leading dimensions are rows
        M, row_stride = _merge(product, a.shape[:-1], a.strides[:-1])
        first = Operand(a.leaf, 0, row_stride, a.strides[-1])
        return first, Operand(b.leaf, 0, b.strides[-2], b.strides[-1]), 1, M, N, K
    wide = []
    for view in (a, b):
        expanded = view.broadcast((*lead, *view.shape[-2:]))
        if expanded is None:
            raise unsupported(product, f"it broadcasts {view.shape} to {product.shape}")
        wide.append(_merge(product, expanded.shape[:-2], expanded.strides[:-2]))
    first = Operand(a.leaf, wide[0][1], a.strides[-2], a.strides[-1])
    second = Operand(b.leaf, wide[1][1], b.strides[-2], b.strides[-1])
    return first, second, math.prod(lead), a.shape[-2], N, K


def _merge(product: Node, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """Return extent and stride of dimensions taken as one."""
    kept = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in zip(kept, kept[1:], strict=False):
        if outer != inner * n:
            raise unsupported(product, f"dimensions {shape} of an operand do not lie together")
    return math.prod(shape), kept[-1][1] if kept else 0


def _epilogue_views(graph: Graph, product: Node, views: dict[str, View]) -> dict[str, View]:
    """Check that all else is pointwise on the product, and return the views of its leaves."""
    found: dict[str, View] = {}
    for node in graph.nodes:
        if node.name in views or node.name == product.name:
            continue
        if node.op not in POINTWISE and node.op not in SHAPE_OPS:
            raise unsupported(node, "no matrix-product template lowers it")
        if node.shape != product.shape:
            raise unsupported(node, f"its shape {node.shape} is not the product's {product.shape}")
        for arg in node.args:
            if arg.node in views:
                view = views[str(arg.node)].broadcast(product.shape)
                if view is None:
                    raise unsupported(node, f"it broadcasts to more than {product.shape}")
                found[str(arg.node)] = view
    unused = {*LEAVES} & {graph.node(n).op for n in graph.outputs}
    if len(graph.outputs) != 1 or unused:
        raise UnsupportedOp(f"expected one computed output, got {len(graph.outputs)} outputs")
    return found
