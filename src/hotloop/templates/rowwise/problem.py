"""What a row-wise problem is: one tensor shape, one group of reduced dimensions, pointwise work.

Every tensor is seen as (outer, columns, inner): `columns` are the adjacent dimensions that all
reductions of the graph go over, `outer` and `inner` the ones before and after. A row is one pair of
outer and inner. Without a reduction the whole tensor is one row of columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from hotloop.core.graph import Graph, Node
from hotloop.errors import UnsupportedOp
from hotloop.templates.analysis import unsupported
from hotloop.templates.operators import POINTWISE
from hotloop.templates.tensor_view import LEAVES, SHAPE_OPS, View, leaf_views

REDUCTIONS = ("sum", "mean", "amax", "amin", "var", "logsumexp", "argmax", "argmin")
COMPOSITES = ("softmax", "log_softmax", "layer_norm", "rms_norm")
LOWERABLE = POINTWISE | set(REDUCTIONS) | set(COMPOSITES) | set(LEAVES) | set(SHAPE_OPS)


@dataclass(frozen=True)
class RowProblem:
    """A graph and the shape that its tiles cover."""

    graph: Graph
    shape: tuple[int, ...]
    """Of the widest tensors."""
    dims: tuple[int, ...]
    """Reduced dimensions of `shape`, adjacent, ascending; empty without a reduction."""
    views: dict[str, View] = field(repr=False)
    """Of leaves, broadcast to `shape` or to one value a row."""

    @classmethod
    def of(cls, graph: Graph) -> RowProblem:
        """Analyse `graph`.

        Raises:
            UnsupportedOp: it is no row-wise problem; names the operation that makes it none.
        """
        for node in graph.nodes:
            if node.op not in LOWERABLE:
                raise unsupported(node, "no row-wise template lowers it")
        node_of = {n.name: n for n in graph.nodes}
        dims: tuple[int, ...] = ()
        shape: tuple[int, ...] | None = None
        for node in graph.nodes:
            if node.op in REDUCTIONS or node.op in COMPOSITES:
                source = node_of[str(node.args[0].node)]
                own = _reduced_dims(node, source)
                if shape is not None and (own, source.shape) != (dims, shape):
                    raise unsupported(node, "it reduces other dimensions than an earlier one")
                dims, shape = own, source.shape
        if shape is None:
            shape = max((n.shape for n in graph.nodes), key=math.prod)
        problem = cls(graph, shape, dims, {})
        problem.views.update(_checked_views(problem))
        return problem

    @property
    def columns(self) -> int:
        """Extent of the reduced dimensions; of everything without a reduction."""
        dims = self.dims or range(len(self.shape))
        return math.prod(self.shape[d] for d in dims)

    @property
    def outer_dims(self) -> tuple[int, ...]:
        """Dimensions before the reduced ones."""
        return tuple(range(self.dims[0])) if self.dims else ()

    @property
    def inner_dims(self) -> tuple[int, ...]:
        """Dimensions after the reduced ones."""
        return tuple(range(self.dims[-1] + 1, len(self.shape))) if self.dims else ()

    @property
    def column_dims(self) -> tuple[int, ...]:
        """Dimensions that the columns run over."""
        return self.dims or tuple(range(len(self.shape)))

    @property
    def outer(self) -> int:
        """Extent of the dimensions before."""
        return math.prod(self.shape[d] for d in self.outer_dims)

    @property
    def inner(self) -> int:
        """Extent of the dimensions after."""
        return math.prod(self.shape[d] for d in self.inner_dims)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.outer * self.inner

    @property
    def row_shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape of one value a row: with the reduced dimensions kept as 1, and without them."""
        kept = tuple(1 if d in self.dims else n for d, n in enumerate(self.shape))
        dropped = tuple(n for d, n in enumerate(self.shape) if d not in self.dims)
        return kept, dropped

    def is_row_value(self, node: Node) -> bool:
        """Whether `node` holds one value a row."""
        return bool(self.dims) and node.shape in self.row_shapes


def _reduced_dims(node: Node, source: Node) -> tuple[int, ...]:
    rank = len(source.shape)
    if node.op in ("softmax", "log_softmax"):
        dims = [int(node.attrs["dim"]) % rank]
    elif node.op in ("layer_norm", "rms_norm"):
        dims = list(range(rank - len(node.attrs["normalized_shape"]), rank))
    else:
        dims = sorted(int(d) % rank for d in node.attrs["dims"])
    if dims != list(range(dims[0], dims[0] + len(dims))):
        raise unsupported(node, f"the reduced dimensions {dims} are not adjacent")
    return tuple(dims)


def _checked_views(problem: RowProblem) -> dict[str, View]:
    """Check that all shapes meet in the problem's, and return the views of the leaves in use."""
    views = leaf_views(problem.graph.nodes)
    found: dict[str, View] = {}
    for node in problem.graph.nodes:
        if node.name in views:
            continue
        target = _target_shape(problem, node)
        for arg in node.args:
            if arg.node is None:
                continue
            source = problem.graph.node(arg.node)
            if arg.node in views:
                expanded = _expand(problem, views[arg.node], node, target)
                if found.setdefault(arg.node, expanded) != expanded:
                    raise unsupported(source, "it is broadcast in two different ways")
            elif not _fits(problem, source.shape, target):
                raise unsupported(node, f"it broadcasts {source.shape} in {target}")
    for name in problem.graph.outputs:
        if name in views:
            raise UnsupportedOp("an output is an input or a view of one: nothing is computed")
    return found


def _target_shape(problem: RowProblem, node: Node) -> tuple[int, ...]:
    """Return the shape at which the operands of `node` meet."""
    if node.op in REDUCTIONS or node.op in COMPOSITES:
        return problem.shape
    if node.op in SHAPE_OPS:
        is_row = problem.is_row_value(node)
        if not is_row and node.shape != problem.shape:
            raise unsupported(node, "it moves data that was computed")
        return node.shape
    if node.shape != problem.shape and not problem.is_row_value(node):
        raise unsupported(node, f"its shape {node.shape} is neither {problem.shape} nor one a row")
    return node.shape


def _expand(problem: RowProblem, view: View, node: Node, target: Sequence[int]) -> View:
    if node.op in ("layer_norm", "rms_norm") and len(view.shape) < len(problem.shape):
        target = problem.shape
    expanded = view.broadcast(target)
    if expanded is not None and tuple(target) == problem.row_shapes[1] != problem.shape:
        expanded = _with_columns(problem, expanded)
    if expanded is not None:
        expanded = expanded.broadcast(problem.shape)
    if expanded is None:
        raise unsupported(node, f"it broadcasts {view.shape} in {problem.shape}")
    return expanded


def _with_columns(problem: RowProblem, view: View) -> View:
    """Insert the reduced dimensions, with extent 1, into a view of one value a row."""
    shape, strides = list(view.shape), list(view.strides)
    for dim in problem.dims:
        shape.insert(dim, 1)
        strides.insert(dim, 0)
    return View(view.leaf, tuple(shape), tuple(strides))


def _fits(problem: RowProblem, source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    if source == target or source in ((), (1,)):
        return True
    kept, dropped = problem.row_shapes
    if source == kept:
        return target in (kept, dropped, problem.shape)
    return source == dropped and target in (kept, dropped)
