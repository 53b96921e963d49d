"""A row-wise problem and one schedule point to a kernel file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.graph import Graph, Node
from hotloop.core.space import Point
from hotloop.templates.activation import device_functions
from hotloop.templates.operators import TRITON_DTYPES, kind_of
from hotloop.templates.rowwise.accumulate import LOOP_NAMES, Accumulator
from hotloop.templates.rowwise.decompose import STATISTICS, decompose, statistic_stages
from hotloop.templates.rowwise.geometry import INDEX_NAMES, RowGeometry
from hotloop.templates.rowwise.lowering import InOrderLowering, RowLowering, row_memory
from hotloop.templates.rowwise.problem import RowProblem
from hotloop.templates.source import identifiers, render_candidate, reserved_names
from hotloop.templates.tensor_view import parameter_name
from hotloop.templates.tile_lowering import TileMemory
from hotloop.templates.value import Level, Names, Value


@dataclass
class Pass:
    """One walk over the columns: statements before, inside and after the loop."""

    before: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Output:
    """One result tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_row: bool


class RowRenderer:
    """Renders one problem at one point."""

    def __init__(self, problem: RowProblem, point: Point) -> None:
        self.problem, self.point = problem, point
        self.graph: Graph = decompose(problem)
        self.node: dict[str, Node] = {n.name: n for n in self.graph.nodes}
        self.tiles = RowGeometry(problem, point)
        self.structure = self.tiles.structure
        self.names = Names(reserved_names("rowwise/kernel.py.jinja") | INDEX_NAMES | LOOP_NAMES)
        self.calls: set[str] = set()
        self._accumulators: list[Accumulator] = []
        leaves = [n for n in self.graph.nodes if n.op in ("input", "parameter", "buffer")]
        used = {v.leaf for v in problem.views.values()}
        own: dict[str, str] = {}
        for leaf in leaves:
            if leaf.name in used:
                own[leaf.name] = parameter_name(leaf, own)
        self.leaf_names = own
        self.pointers = {name: f"{text}_ptr" for name, text in own.items()}
        self.outputs = [
            Output(f"out{i}", node.shape, node.dtype, problem.is_row_value(node))
            for i, node in enumerate(self.node[n] for n in self.graph.outputs)
        ]

    # --- statements ---

    def _memory(self) -> TileMemory:
        return row_memory(self.problem, self.pointers, self.tiles.guards())

    def lowering(self, statistics: dict[str, str]) -> RowLowering:
        """Return a fresh lowering that knows the statistics found so far."""
        lowering = RowLowering(self.graph, self.names, self._memory())
        lowering.statistics.update(statistics)
        return lowering

    def accumulators(self, lowering: RowLowering, stage: list[str]) -> list[Accumulator]:
        """Return one accumulator for each statistic, or pair, of a stage."""
        found: dict[tuple[str, str], list[str]] = {}
        for name in stage:
            node = self.node[name]
            found.setdefault((STATISTICS[node.op], str(node.args[0].node)), []).append(name)
        accumulators = []
        for (kind, source), members in found.items():
            value = lowering.value(source, "float")
            text = lowering.text(value if value.level == Level.ELEMENT else self._spread(value))
            names = self._result_names(kind, members, lowering)
            accumulators.append(
                Accumulator(kind, names, text, self.tiles.has_ragged_columns, self.tiles.is_one_row)
            )
        return accumulators

    def _spread(self, value: Value) -> Value:
        """Broadcast a value that is the same for a whole row or column to the tile."""
        if self.tiles.is_one_row and value.level == Level.COLUMN:
            return value
        shape = "[BLOCK_C]" if self.tiles.is_one_row else "[BLOCK_R, BLOCK_C]"
        text = f"tl.broadcast_to({value.text}, {shape})"
        return Value(text, "float", Level.ELEMENT, coefficient=value.coefficient)

    def _result_names(
        self, kind: str, members: list[str], lowering: RowLowering
    ) -> tuple[str, ...]:
        pairs = {"exp": ("stat_exp_max", "stat_exp_sum"), "moments": ("stat_mean", "stat_m2")}
        wanted = pairs.get(kind, (self.node[members[0]].op,))
        names = []
        for op in wanted:
            name = self.names.fresh(op.removeprefix("stat_"))
            names.append(name)
            for member in members:
                if self.node[member].op == op:
                    lowering.statistics[member] = name
        return tuple(names)

    def passes(self) -> list[Pass]:
        """Return the walks of the loop structure: one a stage, and one for the outputs."""
        passes: list[Pass] = []
        known: dict[str, str] = {}
        for stage in statistic_stages(self.graph):
            lowering = self.lowering(known)
            accumulators = self.accumulators(lowering, stage)
            self._accumulators = accumulators
            walk = Pass(self._before(lowering), self._inside(lowering))
            for accumulator in accumulators:
                walk.before += accumulator.start()
                walk.inside += accumulator.update()
                walk.after += accumulator.finish()
            known = dict(lowering.statistics)
            self.calls |= lowering.calls
            passes.append(walk)
        return [*passes, self.output_pass(known)]

    def output_pass(self, known: dict[str, str]) -> Pass:
        """Return the walk that writes the outputs."""
        lowering = self.lowering(known)
        stores_row: list[str] = []
        stores: list[str] = []
        for output, name in zip(self.outputs, self.graph.outputs, strict=True):
            (stores_row if output.is_row else stores).append(self._store(lowering, output, name))
        self.calls |= lowering.calls
        inside = self._inside(lowering) + stores if stores else []
        return Pass(self._before(lowering) + stores_row, inside)

    def whole(self) -> list[str]:
        """Return all statements of the structure that holds a row in one tile."""
        lowering = InOrderLowering(self.graph, self.names, self._memory())
        lines = lowering.lines
        for stage in statistic_stages(self.graph):
            for accumulator in self.accumulators(lowering, stage):
                lines += accumulator.whole()
        for output, name in zip(self.outputs, self.graph.outputs, strict=True):
            lines.append(self._store(lowering, output, name))
        self.calls |= lowering.calls
        return lines

    @staticmethod
    def _before(lowering: RowLowering) -> list[str]:
        return lowering.sections[Level.PROGRAM] + lowering.sections[Level.ROW]

    @staticmethod
    def _inside(lowering: RowLowering) -> list[str]:
        return lowering.sections[Level.COLUMN] + lowering.sections[Level.ELEMENT]

    def _store(self, lowering: RowLowering, output: Output, name: str) -> str:
        value = lowering.value(name, kind_of(output.dtype))
        if not value.text.isidentifier():
            value = lowering.bind(value, output.name)
        text = lowering.text(value, 7 if output.dtype != "float32" else 1)
        if output.dtype != "float32":
            text += f".to({TRITON_DTYPES[output.dtype]})"
        if self.structure == "flat":
            guard = ", mask=in_col" if self.tiles.has_ragged_columns else ""
            return f"tl.store({output.name}_ptr + col, {text}{guard})"
        level = Level.ROW if output.is_row else Level.ELEMENT
        guard = f", mask={self.tiles.guards()[level]}" if self.tiles.guards()[level] else ""
        place = "row"
        if not output.is_row:
            place = "outer * COLUMNS + col"
            if self.problem.inner > 1:
                place = "outer * (COLUMNS * INNER) + col * INNER + inner"
        return f"tl.store({output.name}_ptr + {place}, {text}{guard})"

    # --- the file ---

    def _row_lines(self, program: str, users: list[str]) -> list[str]:
        """Return the index statements of rows, without those that nothing uses."""
        used = set(identifiers(users))
        unused = [f"{name} = " for name in ("outer", "inner") if name not in used]
        return [ln for ln in self.tiles.row_lines(program) if not ln.startswith(tuple(unused))]

    def values(self) -> dict[str, Any]:
        """Return the values of the template."""
        structure = self.structure
        whole = self.whole() if structure in ("whole", "flat") else []
        passes = self.passes() if not whole else []
        accumulators = list(self._accumulators) if structure == "split" else []
        parts = [name for a in accumulators for name in a.names]
        merges, position = [], 0
        for accumulator in accumulators:
            mine = tuple(f"part{position + i}" for i in range(len(accumulator.names)))
            position += len(mine)
            merges.append((mine, accumulator.merge(mine)))
        functions = device_functions(frozenset(self.calls), tanh="exact")
        lines = [*whole, *(line for p in passes for line in p.before + p.inside)]
        own = {
            text: str(self.node[n].attrs["name"])
            for n, text in self.leaf_names.items()
            if self.node[n].op != "input"
        }
        inputs = [n for n in self.graph.nodes if n.op == "input" and n.name in self.leaf_names]
        return {
            "problem": self.problem,
            "is_one_row": self.tiles.is_one_row,
            "point": self.point,
            "structure": structure,
            "block_columns": self.tiles.block_columns if structure != "flat" else 0,
            "chunk": self.tiles.chunk if structure == "split" else 0,
            "ragged_rows": self.tiles.has_ragged_rows,
            "ragged_columns": self.tiles.has_ragged_columns,
            "wide_index": self.tiles.is_wide,
            "row_lines": {
                "plain": self._row_lines("tl.program_id(0)", lines),
                "split": self._row_lines("(tl.program_id(0) // SPLITS)", lines),
            },
            "column_lines": self.tiles.column_lines() if structure != "flat" else [],
            "lines": whole,
            "passes": passes,
            "parts": parts,
            "merges": merges,
            "functions": functions,
            "uses_libdevice": any("libdevice." in text for text in (*functions, *lines)),
            "outputs": self.outputs,
            "pointers": [*self.pointers.values(), *(f"{o.name}_ptr" for o in self.outputs)],
            "arguments": [
                *(text if text not in own else f"self.{text}" for text in self.leaf_names.values()),
                *(o.name for o in self.outputs),
            ],
            "inputs": [(self.leaf_names[n.name], int(n.attrs["index"])) for n in inputs],
            "parameters": list(own),
            "renamed": {mine: name for mine, name in own.items() if mine != name},
        }


def render_rowwise(problem: RowProblem, point: Point) -> Candidate:
    """Return the kernel of `problem` at the complete schedule `point`."""
    return render_candidate("rowwise/kernel.py.jinja", RowRenderer(problem, point).values())
