"""Row-wise expressions: tiles of rows and columns, and statistics of rows by name."""

from __future__ import annotations

from hotloop.core.graph import Graph, Node
from hotloop.templates.rowwise.decompose import STATISTICS
from hotloop.templates.rowwise.problem import RowProblem
from hotloop.templates.tile_lowering import IndexGroup, TileLowering, TileMemory
from hotloop.templates.value import Level, Names, Value


def row_memory(
    problem: RowProblem, pointers: dict[str, str], guards: dict[Level, str]
) -> TileMemory:
    """Return how row-wise kernels reach their tensors."""
    groups = (
        IndexGroup("outer", problem.outer_dims, Level.ROW),
        IndexGroup("col", problem.column_dims, Level.COLUMN),
        IndexGroup("inner", problem.inner_dims, Level.ROW),
    )
    return TileMemory(problem.views, pointers, groups, guards)


class RowLowering(TileLowering):
    """Lowers the nodes of one pass. Statistics must be known before they are used."""

    def __init__(self, graph: Graph, names: Names, memory: TileMemory) -> None:
        super().__init__(graph, names, memory)
        self.statistics: dict[str, str] = {}
        """Statistic node -> name of its row value."""

    def leaf(self, node: Node) -> Value | None:
        """Return loads, statistics, and shape operations as what they are applied to."""
        if node.op in STATISTICS:
            kind = "int" if "arg" in node.op else "float"
            return Value(self.statistics[node.name], kind, Level.ROW)
        return super().leaf(node)


class InOrderLowering(RowLowering):
    """Keeps statements of all levels in one list, in the order in which they were made."""

    def __init__(self, graph: Graph, names: Names, memory: TileMemory) -> None:
        super().__init__(graph, names, memory)
        self.lines: list[str] = []

    def emit(self, level: Level, line: str) -> None:
        """Add a statement."""
        self.lines.append(line)
