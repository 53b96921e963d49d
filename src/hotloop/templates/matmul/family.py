"""The matrix-product family: x @ w.T + bias and the like, followed by pointwise work."""

from __future__ import annotations

from hotloop.core.candidate import Candidate
from hotloop.core.graph import Graph
from hotloop.core.space import Point, Space
from hotloop.templates.matmul.problem import MatmulProblem
from hotloop.templates.matmul.render import render_matmul
from hotloop.templates.matmul.schedule import matmul_space


class MatmulFamily:
    """Matrix-product kernels for one traced model.

    `allows_tf32` says whether its policy lets float32 products round their operands to TF32.

    Raises:
        UnsupportedOp: the graph is no single product with an epilogue.
    """

    def __init__(self, graph: Graph, *, allows_tf32: bool = False) -> None:
        self._problem = MatmulProblem.of(graph, allows_tf32=allows_tf32)

    def space(self) -> Space:
        """Return the schedule space."""
        return matmul_space(self._problem)

    def render(self, point: Point) -> Candidate:
        """Return the kernel at a complete schedule point."""
        return render_matmul(self._problem, point)
