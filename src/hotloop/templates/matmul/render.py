"""A matrix-product problem and one schedule point to a kernel file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.graph import Node
from hotloop.core.space import Point
from hotloop.templates.activation import device_functions
from hotloop.templates.dot_precision import DOT_PRECISION, TF32, WHY_TF32, rounding
from hotloop.templates.matmul.problem import MatmulProblem, Operand
from hotloop.templates.operators import ATOM, COMPARE, TRITON_DTYPES, kind_of
from hotloop.templates.source import render_candidate, reserved_names
from hotloop.templates.tensor_view import parameter_name
from hotloop.templates.tile_lowering import IndexGroup, TileLowering, TileMemory
from hotloop.templates.value import Level, Names, Value


class EpilogueLowering(TileLowering):
    """Lowers what follows the product; the product itself is the accumulator."""

    def __init__(self, problem: MatmulProblem, names: Names, memory: TileMemory) -> None:
        super().__init__(problem.graph, names, memory)
        self._product = problem.product.name
        self.product_level = Level.ELEMENT

    def leaf(self, node: Node) -> Value | None:
        """Return the accumulator for the product."""
        if node.name == self._product:
            return Value("acc", "float", self.product_level)
        return super().leaf(node)


@dataclass(frozen=True, slots=True)
class Epilogue:
    """Statements after the product and the text that is stored."""

    lines: list[str]
    result: str
    calls: frozenset[str]


def _epilogue(
    problem: MatmulProblem, pointers: dict[str, str], guards: dict[Level, str], *, is_flat: bool
) -> Epilogue:
    rank = len(problem.product.shape)
    if is_flat:
        groups = [IndexGroup("i", range(rank), Level.ELEMENT)]
    elif problem.batch > 1:
        groups = [
            IndexGroup("batch", range(rank - 2), Level.PROGRAM),
            IndexGroup("m_idx", [rank - 2], Level.ROW),
            IndexGroup("n_idx", [rank - 1], Level.COLUMN),
        ]
    else:
        groups = [
            IndexGroup("m_idx", range(rank - 1), Level.ROW),
            IndexGroup("n_idx", [rank - 1], Level.COLUMN),
        ]
    memory = TileMemory(problem.views, pointers, groups, guards)
    names = Names(reserved_names("matmul/kernel.py.jinja") | set(pointers.values()) | {"acc", "i"})
    lowering = EpilogueLowering(problem, names, memory)
    output = problem.output
    value = lowering.value(output.name, kind_of(output.dtype))
    if not value.text.isidentifier():
        value = lowering.bind(value, "result")
    text = lowering.text(value, COMPARE if output.dtype == "float32" else ATOM)
    if output.dtype != "float32":
        text += f".to({TRITON_DTYPES[output.dtype]})"
    sections = lowering.sections
    lines = [line for level in sorted(sections) for line in sections[level]]
    return Epilogue(lines, text, frozenset(lowering.calls))


def render_matmul(problem: MatmulProblem, point: Point) -> Candidate:
    """Return the kernel of `problem` at the complete schedule `point`."""
    leaves = _leaf_names(problem)
    pointers = {name: f"{own}_ptr" for name, own in leaves.items()}
    is_split = int(point["SPLIT_K"]) > 1
    ragged = {
        "m": problem.M % int(point["BLOCK_M"]) != 0,
        "n": problem.N % int(point["BLOCK_N"]) != 0,
        "k": problem.K % (int(point["BLOCK_K"]) * int(point["SPLIT_K"])) != 0,
    }
    rows, columns = ["in_m"] * ragged["m"], ["in_n"] * ragged["n"]
    guards = {
        Level.PROGRAM: "",
        Level.ROW: " & ".join(rows),
        Level.COLUMN: " & ".join(columns),
        Level.ELEMENT: "inside" if is_split else " & ".join(rows + columns),
    }
    epilogue = _epilogue(problem, pointers, guards, is_flat=is_split)
    precision = point.get(DOT_PRECISION)
    functions = device_functions(epilogue.calls | rounding(precision), tanh="exact")
    nodes = {name: problem.graph.node(name) for name in leaves}
    own = {leaves[n]: str(v.attrs["name"]) for n, v in nodes.items() if v.op != "input"}
    used = {v.leaf for v in problem.views.values()}
    values: dict[str, Any] = {
        "problem": problem,
        "point": {DOT_PRECISION: None, **point},
        "rounds": precision == TF32,
        "why_tf32": WHY_TF32,
        "ragged": ragged,
        "is_split": is_split,
        "is_tma": point.get("loads") == "tma",
        "epilogue": epilogue,
        "functions": functions,
        "uses_libdevice": any("libdevice." in t for t in (*functions, *epilogue.lines)),
        "guard": guards[Level.ELEMENT],
        "tile_guard": " & ".join(rows + columns),
        "a": _side(problem, problem.a, "a", leaves),
        "b": _side(problem, problem.b, "b", leaves),
        "wide": problem.batch * problem.M * max(problem.N, problem.K) > 2**30,
        "extras": [(pointers[n], _argument(nodes[n], leaves[n])) for n in leaves if n in used],
        "inputs": [(leaves[n], int(v.attrs["index"])) for n, v in nodes.items() if v.op == "input"],
        "parameters": list(own),
        "renamed": {mine: name for mine, name in own.items() if mine != name},
        "output": problem.output,
        "k_chunk": _k_chunk(problem, point),
    }
    return render_candidate("matmul/kernel.py.jinja", values)


def _k_chunk(problem: MatmulProblem, point: Point) -> int:
    """Return how much of K one program takes: whole tiles."""
    block = int(point["BLOCK_K"])
    return -(-problem.K // (block * int(point["SPLIT_K"]))) * block


def _leaf_names(problem: MatmulProblem) -> dict[str, str]:
    used = {problem.a.leaf, problem.b.leaf, *(v.leaf for v in problem.views.values())}
    names: dict[str, str] = {}
    for node in problem.graph.nodes:
        if node.name in used and node.op != "constant":
            names[node.name] = parameter_name(node, names)
    return names


def _argument(node: Node, own: str) -> str:
    return own if node.op == "input" else f"self.{own}"


def _side(
    problem: MatmulProblem, operand: Operand, name: str, leaves: dict[str, str]
) -> dict[str, Any]:
    """Return the template's values for one operand: (M, K) for a, (K, N) for b."""
    rows, columns = ("M", "K") if name == "a" else ("K", "N")
    is_transposed = operand.column_stride != 1 and operand.row_stride == 1
    outer, inner = (columns, rows) if is_transposed else (rows, columns)
    outer_stride = operand.column_stride if is_transposed else operand.row_stride
    sizes = {"M": problem.M, "N": problem.N, "K": problem.K}
    batch_stride = operand.batch_stride or sizes[outer] * outer_stride
    return {
        "argument": _argument(problem.graph.node(operand.leaf), leaves[operand.leaf]),
        "batch_stride": operand.batch_stride,
        "row_stride": operand.row_stride,
        "column_stride": operand.column_stride,
        "is_transposed": is_transposed,
        "outer": outer,
        "inner": inner,
        "shape": [problem.batch, sizes[outer], sizes[inner]],
        "strides": [batch_stride, outer_stride, 1],
    }
