"""The row-wise family: pointwise chains, row reductions, softmax and norms in one kernel."""

from __future__ import annotations

from hotloop.core.candidate import Candidate
from hotloop.core.graph import Graph
from hotloop.core.space import Point, Space
from hotloop.templates.rowwise.problem import RowProblem
from hotloop.templates.rowwise.render import render_rowwise
from hotloop.templates.rowwise.schedule import rowwise_space


class RowwiseFamily:
    """Row-wise kernels for one traced model.

    Raises:
        UnsupportedOp: the graph is no row-wise problem.
    """

    def __init__(self, graph: Graph) -> None:
        self._problem = RowProblem.of(graph)

    def space(self) -> Space:
        """Return the schedule space."""
        return rowwise_space(self._problem)

    def render(self, point: Point) -> Candidate:
        """Return the kernel at a complete schedule point."""
        return render_rowwise(self._problem, point)
