"""Row-wise composites as pointwise work around a few statistics of a row.

A statistic is what one pass over a row can find: sums and extrema, and two pairs that are found
together: the largest value with the sum of exponentials relative to it (softmax, logsumexp), and
the mean with the sum of squared deviations (layer_norm, var). They become nodes with the operations
of `STATISTICS`, which only the row-wise template knows.
"""

from __future__ import annotations

from dataclasses import replace

from hotloop.core.graph import Arg, Graph, Node
from hotloop.templates.rowwise.problem import RowProblem

STATISTICS = {
    "stat_sum": "sum",
    "stat_max": "max",
    "stat_min": "min",
    "stat_argmax": "argmax",
    "stat_argmin": "argmin",
    "stat_exp_max": "exp",
    "stat_exp_sum": "exp",
    "stat_mean": "moments",
    "stat_m2": "moments",
}
"""Operations of statistic nodes, and the accumulator that finds each."""


class _Decomposer:
    def __init__(self, problem: RowProblem) -> None:
        self._problem = problem
        self._row_shape = problem.row_shapes[0]
        self.nodes: list[Node] = []
        self._taken = {n.name for n in problem.graph.nodes}

    def emit(self, op: str, *args: Arg | str | float, row: bool) -> str:
        """Add a float node and return its name."""
        name = self._fresh(op)
        lifted = tuple(
            a if isinstance(a, Arg) else Arg(node=a) if isinstance(a, str) else Arg(value=a)
            for a in args
        )
        shape = self._row_shape if row else self._problem.shape
        self.nodes.append(Node(name=name, op=op, args=lifted, shape=shape, dtype="float32"))
        return name

    def _fresh(self, base: str) -> str:
        base = base.removeprefix("stat_")
        number, name = 1, base
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def statistic(self, op: str, source: Arg) -> str:
        """Return the node of one statistic of `source`, shared between its users."""
        for node in self.nodes:
            if node.op == op and node.args == (source,):
                return node.name
        return self.emit(op, source, row=True)

    def rewrite(self, node: Node) -> None:
        """Add `node`, in terms of statistics where it is a reduction or composite."""
        rule = getattr(self, f"_{node.op}", None)
        if rule is None:
            self.nodes.append(node)
        else:
            rule(node, node.args[0])

    def _simple(self, node: Node, op: str) -> None:
        statistic = self.statistic(op, node.args[0])
        self.nodes.append(replace(node, op="cast", args=(Arg(node=statistic),), attrs={}))

    def _sum(self, node: Node, x: Arg) -> None:
        self._simple(node, "stat_sum")

    def _amax(self, node: Node, x: Arg) -> None:
        self._simple(node, "stat_max")

    def _amin(self, node: Node, x: Arg) -> None:
        self._simple(node, "stat_min")

    def _argmax(self, node: Node, x: Arg) -> None:
        self.nodes.append(replace(node, op="stat_argmax", attrs={}))

    def _argmin(self, node: Node, x: Arg) -> None:
        self.nodes.append(replace(node, op="stat_argmin", attrs={}))

    def _mean(self, node: Node, x: Arg) -> None:
        total = self.statistic("stat_sum", x)
        self._finish(node, "div", total, float(self._problem.columns))

    def _var(self, node: Node, x: Arg) -> None:
        m2 = self.statistic("stat_m2", x)
        degrees = self._problem.columns - float(node.attrs.get("correction", 1))
        self._finish(node, "div", m2, degrees)

    def _logsumexp(self, node: Node, x: Arg) -> None:
        top, total = self.statistic("stat_exp_max", x), self.statistic("stat_exp_sum", x)
        log = self.emit("log", total, row=True)
        self._finish(node, "add", top, log)

    def _softmax(self, node: Node, x: Arg) -> None:
        top, total = self.statistic("stat_exp_max", x), self.statistic("stat_exp_sum", x)
        shifted = self.emit("sub", x, top, row=False)
        weight = self.emit("exp", shifted, row=False)
        inverse = self.emit("reciprocal", total, row=True)
        self._finish(node, "mul", weight, inverse)

    def _log_softmax(self, node: Node, x: Arg) -> None:
        top, total = self.statistic("stat_exp_max", x), self.statistic("stat_exp_sum", x)
        log = self.emit("log", total, row=True)
        self._finish(node, "sub", x, self.emit("add", top, log, row=True))

    def _layer_norm(self, node: Node, x: Arg) -> None:
        mean, m2 = self.statistic("stat_mean", x), self.statistic("stat_m2", x)
        variance = self.emit("div", m2, float(self._problem.columns), row=True)
        shifted = self.emit("add", variance, float(node.attrs["eps"]), row=True)
        inverse = self.emit("rsqrt", shifted, row=True)
        centered = self.emit("sub", x, mean, row=False)
        self._scale(node, self.emit("mul", centered, inverse, row=False))

    def _rms_norm(self, node: Node, x: Arg) -> None:
        square = self.emit("square", x, row=False)
        total = self.statistic("stat_sum", Arg(node=square))
        mean = self.emit("div", total, float(self._problem.columns), row=True)
        shifted = self.emit("add", mean, float(node.attrs["eps"]), row=True)
        inverse = self.emit("rsqrt", shifted, row=True)
        self._scale(node, self.emit("mul", x, inverse, row=False))

    def _scale(self, node: Node, value: str) -> None:
        """Multiply by the weight and add the bias, where the norm has them."""
        parameters = node.args[1:]
        for op, parameter in zip(("mul", "add"), parameters, strict=False):
            value = self.emit(op, value, parameter, row=False)
        self.nodes.append(replace(node, op="cast", args=(Arg(node=value),), attrs={}))

    def _finish(self, node: Node, op: str, *args: Arg | str | float) -> None:
        lifted = tuple(
            a if isinstance(a, Arg) else Arg(node=a) if isinstance(a, str) else Arg(value=a)
            for a in args
        )
        self.nodes.append(replace(node, op=op, args=lifted, attrs={}))


def decompose(problem: RowProblem) -> Graph:
    """Return the problem's graph in terms of pointwise operations and statistics."""
    decomposer = _Decomposer(problem)
    for node in problem.graph.nodes:
        decomposer.rewrite(node)
    return Graph(nodes=tuple(decomposer.nodes), outputs=problem.graph.outputs)


def statistic_stages(graph: Graph) -> list[list[str]]:
    """Return the statistics in passes: each needs only those of earlier passes."""
    depth: dict[str, int] = {}
    for node in graph.nodes:
        below = max((depth[a.node] for a in node.args if a.node is not None), default=0)
        depth[node.name] = below + (node.op in STATISTICS)
    stages: list[list[str]] = [[] for _ in range(max(depth.values(), default=0))]
    for node in graph.nodes:
        if node.op in STATISTICS:
            stages[depth[node.name] - 1].append(node.name)
    return stages
