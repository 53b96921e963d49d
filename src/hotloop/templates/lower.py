"""Graph nodes to Triton expressions, each computed as rarely as it can be.

A tile kernel has four places for a value: once per program, once per row of the tile, once per
column, once per element. `Lowering` writes every pointwise node as a text at the least of these
that it needs, gives it a name where it is used twice or at a finer level, and folds constant
factors into one multiplication. A family subclasses it to say what its leaves are.

Row values have shape (rows, 1) and column values (1, columns) in the generated code, so that
expressions broadcast without any further notation.
"""

from __future__ import annotations

import keyword
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntFlag

from hotloop.core.graph import Arg, Node
from hotloop.templates.analysis import unsupported
from hotloop.templates.operators import (
    ADD,
    ATOM,
    COMPARE,
    FORMS,
    MULTIPLY,
    TRITON_DTYPES,
    UNARY,
    Form,
    kind_of,
    literal,
)

MAX_EXPRESSION = 60
"""Longer expressions get a name of their own."""

_RANK = {"bool": 0, "int": 1, "float": 2}
_FLOAT_ARITHMETIC = frozenset({"add", "sub", "mul", "neg", "abs", "minimum", "maximum", "cast"})


class Level(IntFlag):
    """How often a value is computed; the union of two is where they can be combined."""

    PROGRAM = 0
    ROW = 1
    COLUMN = 2
    ELEMENT = 3


@dataclass(frozen=True, slots=True)
class Value:
    """An expression: its text, and what its users must know about it."""

    text: str
    kind: str
    level: Level
    binding: int = ATOM
    coefficient: float = 1.0
    """A factor not yet in the text; floats only."""


class Names:
    """Identifiers of one generated file; hands out each at most once."""

    def __init__(self, reserved: frozenset[str]) -> None:
        self._taken = set(reserved)

    def fresh(self, base: str) -> str:
        """Return `base`, or `base` with a number where it is taken or a keyword."""
        name, number = base, 1
        while name in self._taken or keyword.iskeyword(name):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


class Lowering:
    """Writes the nodes of one graph. `sections` collects the statements of each level."""

    def __init__(self, nodes: Mapping[str, Node], names: Names) -> None:
        self.nodes = nodes
        self.names = names
        self.sections: dict[Level, list[str]] = {level: [] for level in _LEVEL_NAMES}
        self.calls: set[str] = set()
        self._uses = Counter(a.node for n in nodes.values() for a in n.args if a.node is not None)
        self._values: dict[tuple[str, str], Value] = {}

    # --- what a family says ---

    def leaf(self, node: Node) -> Value | None:
        """Return the value of a node that is no pointwise operation; None where it is one."""
        raise NotImplementedError

    def is_exact_in_float(self, node: Node) -> bool:
        """Whether the integer `node` is exact in float32."""
        return False

    # --- values ---

    def value(self, name: str, kind: str | None = None) -> Value:
        """Return the value of node `name`, converted to `kind` where one is given."""
        node = self.nodes[name]
        own = kind_of(node.dtype)
        key = (name, kind or own)
        if key not in self._values:
            written = self._write(node) if kind in (None, own) else self._converted(node, key[1])
            self._values[key] = self._settle(node, written)
        return self._values[key]

    def operand(self, arg: Arg, kind: str) -> Value:
        """Return the value of an argument as `kind`."""
        if arg.node is not None:
            return self.value(arg.node, kind)
        if arg.value is None:
            raise ValueError("expected a node or a number, got an empty argument")
        number = float(arg.value) if kind == "float" else arg.value
        binding = ATOM if number >= 0 else UNARY
        return Value(literal(number), kind, Level.PROGRAM, binding)

    def bind(self, value: Value, base: str) -> Value:
        """Make `value` a statement of its level and return its name as a value."""
        name = self.names.fresh(base)
        self.emit(value.level, f"{name} = {self.text(value)}")
        return Value(name, value.kind, value.level)

    def emit(self, level: Level, line: str) -> None:
        """Add a statement where values of `level` are computed."""
        self.sections[level].append(line)

    def text(self, value: Value, binding: int = COMPARE) -> str:
        """Write `value` with its factor, in parentheses where its context needs them."""
        if value.coefficient == 1.0:
            text, own = value.text, value.binding
        elif value.coefficient == -1.0:
            text, own = f"-{self._wrap(value.text, value.binding, UNARY)}", UNARY
        else:
            factor = literal(value.coefficient)
            text, own = f"{self._wrap(value.text, value.binding, MULTIPLY)} * {factor}", MULTIPLY
        return self._wrap(text, own, binding)

    def combine(self, form: Form, operands: list[Value], base: str) -> Value:
        """Write `form` on `operands`; operands of a lower level become statements there first."""
        level = Level.PROGRAM
        for operand in operands:
            level |= operand.level
        texts = []
        for position, operand in enumerate(operands):
            needed = form.operands
            if form.right is not None and position == len(operands) - 1:
                needed = form.right
            texts.append(self.text(self._hoisted(operand, level, base), needed))
        kind = form.result or max((o.kind for o in operands), key=_RANK.__getitem__)
        self.calls.update(form.calls)
        return Value(form.text.format(*texts), kind, level, form.binding)

    # --- the parts ---

    @staticmethod
    def _wrap(text: str, own: int, needed: int) -> str:
        return text if own >= needed else f"({text})"

    def _hoisted(self, value: Value, level: Level, base: str) -> Value:
        is_simple = value.binding == ATOM and value.coefficient == 1.0 and "(" not in value.text
        if value.level == level or is_simple or value.text.lstrip("-")[:1].isdigit():
            return value
        return self.bind(value, f"{base}_{_LEVEL_NAMES[value.level]}")

    def _settle(self, node: Node, value: Value) -> Value:
        is_name = value.text.isidentifier() or value.level == Level.PROGRAM and value.binding == ATOM
        if is_name or (self._uses[node.name] < 2 and len(value.text) <= MAX_EXPRESSION):
            return value
        return self.bind(value, node.name)

    def _converted(self, node: Node, kind: str) -> Value:
        own = kind_of(node.dtype)
        if kind == "float" and own == "int" and self._is_float_arithmetic(node):
            return self._pointwise(node, "float")
        plain = self.value(node.name)
        if own == "bool" and kind == "int":
            return Value(f"{self.text(plain, ATOM)}.to(tl.int32)", "int", plain.level)
        if kind == "float":
            return Value(f"{self.text(plain, ATOM)}.to(tl.float32)", "float", plain.level)
        zero = "0.0" if own == "float" else "0"
        return Value(f"{self.text(plain, ADD)} != {zero}", "bool", plain.level, COMPARE)

    def _is_float_arithmetic(self, node: Node) -> bool:
        """Whether integer arithmetic may as well be done in float32, with the same result."""
        if node.op not in _FLOAT_ARITHMETIC or not self.is_exact_in_float(node):
            return False
        inner = [self.nodes[a.node] for a in node.args if a.node is not None]
        return all(kind_of(n.dtype) == "int" and self.is_exact_in_float(n) for n in inner)

    def _write(self, node: Node) -> Value:
        leaf = self.leaf(node)
        if leaf is not None:
            return leaf
        rule = getattr(self, f"_write_{node.op}", None)
        if rule is not None:
            result: Value = rule(node)
            return result
        if node.op not in FORMS:
            raise unsupported(node, "no template lowers it")
        return self._pointwise(node, None)

    def _pointwise(self, node: Node, kind: str | None) -> Value:
        """Write a row of `FORMS`; `kind` overrides that of the operands."""
        form = FORMS.get(node.op)
        if form is None:  # a cast between integers, asked for as a float
            return self.operand(node.args[0], kind or kind_of(node.dtype))
        args = [*node.args, *self._defaults(node, form)]
        operand_kind = kind or self._operand_kind(node, form)
        if node.op in ("mul", "div", "neg") and operand_kind == "float":
            folded = self._fold_factor(node)
            if folded is not None:
                return folded
        operands = [self.operand(arg, operand_kind) for arg in args]
        if "{0}" in form.text and form.text.count("{0}") > 1:
            operands[0] = self._named(operands[0], node.name)
        return self.combine(form, operands, node.name)

    def _named(self, value: Value, base: str) -> Value:
        is_name = value.text.isidentifier() and value.coefficient == 1.0
        return value if is_name else self.bind(value, f"{base}_in")

    def _operand_kind(self, node: Node, form: Form) -> str:
        if form.kind != "same":
            return form.kind
        kinds = [
            kind_of(self.nodes[a.node].dtype) if a.node is not None else _kind_of_number(a.value)
            for a in node.args
        ]
        if form.result is None:
            kinds.append(kind_of(node.dtype))
        return max(kinds, key=_RANK.__getitem__)

    @staticmethod
    def _defaults(node: Node, form: Form) -> list[Arg]:
        given = len(node.args) - 1
        names = list(form.defaults)[max(given, 0) :]
        return [Arg(value=node.attrs.get(n, form.defaults[n])) for n in names]

    def _fold_factor(self, node: Node) -> Value | None:
        """Turn a product with a number into a factor of the other operand."""
        if node.op == "neg":
            inner = self.operand(node.args[0], "float")
            return replace(inner, coefficient=-inner.coefficient)
        left, right = node.args
        number = self.number(right)
        if number is None and node.op == "mul":
            left, number = right, self.number(left)
        if number is None or number == 0 or self.number(left) is not None:
            return None
        inner = self.operand(left, "float")
        factor = number if node.op == "mul" else 1.0 / number
        return replace(inner, coefficient=inner.coefficient * factor)

    def number(self, arg: Arg) -> float | None:
        """Return the value of a literal or constant node, else None."""
        if arg.node is None:
            return None if arg.value is None else float(arg.value)
        node = self.nodes[arg.node]
        if node.op == "constant":
            return float(node.attrs["value"])
        return self.number(node.args[0]) if node.op == "cast" else None

    # --- operations with rules of their own ---

    def _write_constant(self, node: Node) -> Value:
        value = node.attrs["value"]
        kind = kind_of(node.dtype)
        return self.operand(Arg(value=float(value) if kind == "float" else value), kind)

    def _write_where(self, node: Node) -> Value:
        kind = kind_of(node.dtype)
        condition = self.operand(node.args[0], "bool")
        branches = [self.operand(arg, kind) for arg in node.args[1:3]]
        form = Form(text="tl.where({0}, {1}, {2})", kind=kind)
        return replace(self.combine(form, [condition, *branches], node.name), kind=kind)

    def _write_cast(self, node: Node) -> Value:
        kind, arg = kind_of(node.dtype), node.args[0]
        source = self.nodes[arg.node].dtype if arg.node is not None else node.dtype
        if kind == "bool" or (kind == "float" and kind_of(source) != "float"):
            inner = self.operand(arg, kind)
        else:
            inner = self.operand(arg, kind_of(source))
        if node.dtype in ("bool", "float32", "float64") or node.dtype == source:
            return inner
        rounded = f"{self.text(inner, ATOM)}.to({TRITON_DTYPES[node.dtype]})"
        if kind == "float":  # rounding is part of the problem; arithmetic goes on in float32
            rounded += ".to(tl.float32)"
        return Value(rounded, kind, inner.level)

    def _write_pow(self, node: Node) -> Value:
        base, exponent = node.args
        power, number = self.number(exponent), self.number(base)
        if number is not None and number > 0 and power is None:
            return self._write_exponential(node, number)
        simple = {2: "square", 0.5: "sqrt", -1: "reciprocal", -0.5: "rsqrt"}
        kind = kind_of(node.dtype)
        if power == 1:
            return self.operand(base, kind)
        if power == 3:
            inner = self._named(self.operand(base, kind), node.name)
            cube = Form(text="{0} * {0} * {0}", binding=MULTIPLY, operands=UNARY)
            return self.combine(cube, [inner], node.name)
        if power in simple and (kind == "float" or power == 2):
            as_unary = replace(node, op=simple[power], args=(base,))
            return self._pointwise(as_unary, kind)
        form = Form(text="libdevice.pow({0}, {1})")
        return self.combine(form, [self.operand(a, "float") for a in node.args], node.name)

    def _write_exponential(self, node: Node, base: float) -> Value:
        inner = self.operand(node.args[1], "float")
        scaled = replace(inner, coefficient=inner.coefficient * math.log2(base))
        self.calls.update(FORMS["exp2"].calls)
        return self.combine(FORMS["exp2"], [scaled], node.name)

    def _write_floordiv(self, node: Node) -> Value:
        return self._division(node, "//", "floor_div")

    def _write_remainder(self, node: Node) -> Value:
        return self._division(node, "%", "floor_mod")

    def _division(self, node: Node, symbol: str, function: str) -> Value:
        if kind_of(node.dtype) == "float":
            operands = [self.operand(a, "float") for a in node.args]
            if function == "floor_mod":
                form = Form(text="float_mod({0}, {1})", calls=("float_mod",))
            else:
                form = Form(text="tl.floor({0} / {1})", operands=MULTIPLY, right=UNARY)
            return self.combine(form, operands, node.name)
        operands = [self.operand(a, "int") for a in node.args]
        if self.is_nonnegative(node.args[0]) and self.is_nonnegative(node.args[1]):
            form = Form(
                text=f"{{0}} {symbol} {{1}}", binding=MULTIPLY, operands=MULTIPLY, right=UNARY
            )
        else:
            form = Form(text=f"{function}({{0}}, {{1}})", calls=(function,))
        return self.combine(form, operands, node.name)

    def is_nonnegative(self, arg: Arg) -> bool:
        """Whether `arg` is known to be at least 0: Triton's // and % agree with Python's there."""
        number = self.number(arg)
        return number is not None and number >= 0

    def _write_clamp(self, node: Node) -> Value:
        kind = kind_of(node.dtype)
        value = self.operand(node.args[0], kind)
        low, high = self._clamp_ends(node)
        for function, end in (("tl.maximum", low), ("tl.minimum", high)):
            if end.node is not None or end.value is not None:
                form = Form(text=f"{function}({{0}}, {{1}})")
                value = self.combine(form, [value, self.operand(end, kind)], node.name)
        return replace(value, kind=kind)

    @staticmethod
    def _clamp_ends(node: Node) -> tuple[Arg, Arg]:
        given = [*node.args[1:], Arg(), Arg()]
        ends = []
        for position, name in enumerate(("min", "max")):
            arg = given[position]
            if arg.node is None and arg.value is None:
                arg = Arg(value=node.attrs.get(name))
            ends.append(arg)
        return ends[0], ends[1]


_LEVEL_NAMES = {
    Level.PROGRAM: "one",
    Level.ROW: "row",
    Level.COLUMN: "col",
    Level.ELEMENT: "all",
}


def _kind_of_number(value: float | int | bool | None) -> str:
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "float"
