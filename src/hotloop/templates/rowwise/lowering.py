"""Row-wise expressions: loads of leaves, statistics by name, pointwise work in between."""

from __future__ import annotations

from hotloop.core.graph import Graph, Node
from hotloop.templates.lower import Level, Lowering, Names, Value
from hotloop.templates.operators import kind_of
from hotloop.templates.rowwise.decompose import STATISTICS
from hotloop.templates.rowwise.problem import RowProblem
from hotloop.templates.tensor_view import SHAPE_OPS, View, offset_text


class RowLowering(Lowering):
    """Lowers the nodes of one pass. Statistics must be known before they are used."""

    def __init__(
        self,
        graph: Graph,
        problem: RowProblem,
        names: Names,
        *,
        pointers: dict[str, str],
        guards: dict[Level, str],
    ) -> None:
        super().__init__({n.name: n for n in graph.nodes}, names)
        self._problem = problem
        self._pointers = pointers
        self._guards = guards
        self.statistics: dict[str, str] = {}
        """Statistic node -> name of its row value."""

    def leaf(self, node: Node) -> Value | None:
        """Return loads, statistics, and shape operations as what they are applied to."""
        if node.op == "constant":
            return None
        if node.name in self._problem.views:
            return self._load(node, self._problem.views[node.name])
        if node.op in STATISTICS:
            return self.statistic(node)
        if node.op in SHAPE_OPS:
            return self.value(str(node.args[0].node))
        return None

    def statistic(self, node: Node) -> Value:
        """Return the row value of a statistic of an earlier pass."""
        kind = "int" if "arg" in node.op else "float"
        return Value(self.statistics[node.name], kind, Level.ROW)

    def _load(self, node: Node, view: View) -> Value:
        problem = self._problem
        level, parts = Level.PROGRAM, []
        for index, dims, own in (
            ("outer", problem.outer_dims, Level.ROW),
            ("col", problem.column_dims, Level.COLUMN),
            ("inner", problem.inner_dims, Level.ROW),
        ):
            text = offset_text(
                index, [view.shape[d] for d in dims], [view.strides[d] for d in dims]
            )
            if text:
                level |= own
                parts.append(text)
        leaf = problem.graph.node(view.leaf)
        pointer = " + ".join([self._pointers[view.leaf], *parts])
        guard = f", mask={self._guards[level]}, other=0" if self._guards[level] else ""
        text = f"tl.load({pointer}{guard})"
        kind = kind_of(leaf.dtype)
        if kind == "float" and leaf.dtype != "float32":
            text += ".to(tl.float32)"
        base = self._pointers[view.leaf].removesuffix("_ptr")
        return self.bind(Value(text, kind, level), base)
