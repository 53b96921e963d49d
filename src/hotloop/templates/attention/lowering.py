"""Score and mask expressions inside the attention kernel: leaves, gathers and the final sum.

In the kernel `qk` is the tile of q k^T, `q_idx` the rows as (BLOCK_M, 1), `kv_idx` the keys as
(1, BLOCK_N), and `batch`, `head` are scalars. Everything is checked by the judge, not here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hotloop.core.graph import Arg, AttentionSpec, Node
from hotloop.templates.analysis import FLOAT32_EXACT, Interval, ScalarGraph
from hotloop.templates.attention.score import LOG2_E, ScoreSum, Term
from hotloop.templates.lower import Lowering
from hotloop.templates.operators import ADD, ATOM, MULTIPLY, kind_of, literal
from hotloop.templates.value import Level, Names, Value

WIDE = 2**31
"""Elements from which offsets need 64 bits."""

_INDEX_NAMES = {
    "index_b": ("batch", Level.PROGRAM),
    "index_h": ("head", Level.PROGRAM),
    "index_q": ("q_idx", Level.ROW),
    "index_kv": ("kv_idx", Level.COLUMN),
}

_SHORT_AXIS = {"batch": "b", "head": "h", "query": "q", "key": "kv"}


class AttentionLowering(Lowering):
    """Lowers one score_mod or mask_mod; several of them share one set of names."""

    def __init__(self, graph: ScalarGraph, spec: AttentionSpec, names: Names, tile: Tile) -> None:
        super().__init__(graph.node, names)
        self._graph = graph
        self._spec = spec
        self._tile = tile
        self._shapes = {b.name: b.shape for b in spec.buffers}
        self._dtypes = {b.name: b.dtype for b in spec.buffers}
        self.buffers: dict[str, None] = {}
        """Names of the buffers that are read, in order of first use."""

    def leaf(self, node: Node) -> Value | None:
        """Return indices, the score and gathers."""
        if node.op in _INDEX_NAMES:
            name, level = _INDEX_NAMES[node.op]
            return Value(name, "int", level)
        if node.op == "score":
            return Value("qk", "float", Level.ELEMENT, coefficient=self._spec.scale)
        if node.op == "gather":
            return self._gather(node)
        return None

    def is_exact_in_float(self, node: Node) -> bool:
        """Whether float32 holds every value of the integer `node`."""
        return self._graph.interval[node.name].magnitude < FLOAT32_EXACT

    def is_nonnegative(self, arg: Arg) -> bool:
        """Whether `arg` is at least 0 by its interval."""
        return self._graph.interval_of(arg).low >= 0

    def interval(self, name: str) -> Interval:
        """Return the interval of a node's values."""
        return self._graph.interval[name]

    @property
    def scale(self) -> float:
        """What q k^T is multiplied with before the score_mod."""
        return self._spec.scale

    def _converted(self, node: Node, kind: str) -> Value:
        if kind == "float" and node.op in ("index_q", "index_kv"):
            text, level = _INDEX_NAMES[node.op]
            return self.bind(
                Value(f"{text}.to(tl.float32)", "float", level), text.replace("idx", "pos")
            )
        return super()._converted(node, kind)

    def _gather(self, node: Node) -> Value:
        """Read a captured tensor at index expressions; negative indices count from the end."""
        buffer_node = node.args[0].node
        name = str(self.nodes[str(buffer_node)].attrs["name"])
        shape = self._shapes[name]
        self.buffers[name] = None
        level, offset = Level.PROGRAM, ""
        is_wide = math.prod(shape) >= WIDE
        for position, index in enumerate(node.args[1:]):
            value = self._in_range(self.operand(index, "int"), index, shape[position])
            stride = 1
            for extent in shape[position + 1 :]:
                stride *= extent
            level |= value.level
            if is_wide and not value.text.lstrip("-").isdigit():
                value = replace(value, text=f"{self.text(value, ATOM)}.to(tl.int64)", binding=ATOM)
            text = self.text(value, ADD if stride == 1 else MULTIPLY)
            part = text if stride == 1 else f"{text} * {stride}"
            offset = f"{offset} + {part}" if offset else part
        pointer = f"{name}_ptr + {offset}" if offset else f"{name}_ptr"
        guard = self._guard(level)
        loaded = f"tl.load({pointer}{guard})"
        if self._dtypes[name] in ("float64", "float16", "bfloat16"):
            loaded += ".to(tl.float32)"
        kind = kind_of(self._dtypes[name])
        axes = sorted(self._graph.axes[node.name] & _SHORT_AXIS.keys())
        base = "_".join([name, *(_SHORT_AXIS[a] for a in axes)])
        return self.bind(Value(loaded, kind, level), base)

    def _in_range(self, value: Value, index: Arg, extent: int) -> Value:
        if self._graph.interval_of(index).low >= 0 or index.node is None:
            number = self.number(index)
            if number is not None and number < 0:
                return Value(str(int(number) + extent), "int", Level.PROGRAM)
            return value
        if self.nodes[index.node].dtype == "uint8":
            return value
        named = self.named(value, "index")
        wrapped = f"tl.where({named.text} < 0, {named.text} + {extent}, {named.text})"
        return Value(wrapped, "int", named.level)

    def _guard(self, level: Level) -> str:
        """Return the mask arguments that keep rows and keys past the end out of memory."""
        limits = []
        if level & Level.ROW and self._tile.has_ragged_rows:
            limits.append("(q_idx < S)")
        if level & Level.COLUMN and self._tile.has_ragged_keys:
            limits.append("(kv_idx < KV_LEN)")
        return f", mask={' & '.join(limits)}, other=0" if limits else ""


@dataclass(frozen=True, slots=True)
class Tile:
    """What lowering must know of the tiling."""

    has_ragged_rows: bool
    has_ragged_keys: bool


@dataclass(frozen=True, slots=True)
class ScoreForm:
    """How the kernel gets from `qk` to exponents of 2: x * scale, with x a name."""

    x: str
    scale: str | None
    """A positive number, folded into the exponent; None where x is in units of log2 already."""


def write_score(lowering: AttentionLowering, terms: ScoreSum) -> ScoreForm:
    """Emit the statements for the score and return its form."""
    single = terms.constant_multiple
    if single is not None:
        value = _term_value(lowering, single)
        scale = value.coefficient * LOG2_E
        if scale > 0:
            plain = replace(value, coefficient=1.0)
            name = plain if plain.text.isidentifier() else lowering.bind(plain, "x")
            return ScoreForm(name.text, literal(scale))
    parts = [
        *(log2(_term_value(lowering, t)) for t in terms.score + terms.element),
        *_summed(lowering, [_term_value(lowering, t) for t in terms.row], "row_bias"),
        *_column_bias(lowering, terms),
    ]
    if not any(p.level == Level.ELEMENT for p in parts):
        parts.insert(0, Value("tl.zeros_like(qk)", "float", Level.ELEMENT))
    bound = lowering.bind(Value(sum_text(lowering, parts), "float", Level.ELEMENT), "s")
    return ScoreForm(bound.text, None)


def log2(value: Value) -> Value:
    """Return a value in units of log2."""
    return replace(value, coefficient=value.coefficient * LOG2_E)


def _term_value(lowering: AttentionLowering, term: Term) -> Value:
    """Return one term, its scalar factors multiplied into one number per program."""
    if term.base is None:
        value = Value("", "float", Level.PROGRAM)
    elif lowering.nodes[term.base].op == "index_kv":
        value = _distance(lowering)
    else:
        value = lowering.value(term.base, "float")
    value = replace(value, coefficient=value.coefficient * term.factor)
    if not term.scalars:
        if not value.text:  # a bare number
            return Value(literal(value.coefficient), "float", Level.PROGRAM)
        return value
    factors = [lowering.value(name, "float") for name in term.scalars]
    text = " * ".join(lowering.text(f, MULTIPLY) for f in factors)
    scale = LOG2_E * value.coefficient
    scalar = lowering.bind(Value(text, "float", Level.PROGRAM, MULTIPLY, scale), "slope")
    if not value.text:
        return replace(scalar, coefficient=1.0 / LOG2_E)
    inner = lowering.text(replace(value, coefficient=1.0), MULTIPLY)
    return Value(f"{inner} * {scalar.text}", "float", value.level, MULTIPLY, 1.0 / LOG2_E)


def _distance(lowering: AttentionLowering) -> Value:
    """Keys counted from the tile's first row, as floats; made once."""
    section = lowering.sections[Level.COLUMN]
    line = "distance = (kv_idx - q_first).to(tl.float32)"
    if line not in section:
        section.append(line)
    return Value("distance", "float", Level.COLUMN)


def _column_bias(lowering: AttentionLowering, terms: ScoreSum) -> list[Value]:
    values = [_term_value(lowering, t) for t in terms.affine + terms.column]
    return _summed(lowering, values, "bias")


def _summed(lowering: AttentionLowering, values: list[Value], name: str) -> list[Value]:
    """Add up values of one level into one named value in units of log2."""
    if not values:
        return []
    parts = [log2(v) for v in values]
    level = Level.PROGRAM
    for part in parts:
        level |= part.level
    text = sum_text(lowering, parts)
    return [lowering.bind(Value(text, "float", level, ADD), name)]


def sum_text(lowering: AttentionLowering, parts: list[Value]) -> str:
    """Return the sum of values as one expression."""
    text = ""
    for part in parts:
        coefficient = 1.0 if abs(part.coefficient - 1.0) < 1e-12 else part.coefficient
        if not text:
            text = lowering.text(replace(part, coefficient=coefficient), ADD)
        elif coefficient < 0:
            text += " - " + lowering.text(replace(part, coefficient=-coefficient), MULTIPLY)
        else:
            text += " + " + lowering.text(replace(part, coefficient=coefficient), ADD)
    return text
