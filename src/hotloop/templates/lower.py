"""Graph nodes to Triton expressions, each computed as rarely as it can be.

A tile kernel has four places for a value: once per program, once per row of the tile, once per
column, once per element. `Lowering` writes every pointwise node as a text at the least of these
that it needs, gives it a name where it is used twice or at a finer level, and folds constant
factors into one multiplication. A family subclasses it to say what its leaves are.

Row values have shape (rows, 1) and column values (1, columns) in the generated code, so that
expressions broadcast without any further notation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hotloop.core.graph import Arg, Node
from hotloop.templates.analysis import unsupported
from hotloop.templates.operators import (
    ADD,
    ATOM,
    COMPARE,
    FORMS,
    MULTIPLY,
    UNARY,
    Form,
    kind_of,
    literal,
)
from hotloop.templates.rules import RULES
from hotloop.templates.value import Level, Names, Value

MAX_EXPRESSION = 60
"""Longer expressions get a name of their own."""

_RANK = {"bool": 0, "int": 1, "float": 2}
_FLOAT_ARITHMETIC = frozenset({"add", "sub", "mul", "neg", "abs", "minimum", "maximum", "cast"})


class Lowering(ABC):
    """Writes the nodes of one graph. `sections` collects the statements of each level."""

    def __init__(self, nodes: Mapping[str, Node], names: Names) -> None:
        self.nodes = nodes
        self.names = names
        self.sections: dict[Level, list[str]] = {level: [] for level in _LEVEL_NAMES}
        self.calls: set[str] = set()
        self._uses = Counter(a.node for n in nodes.values() for a in n.args if a.node is not None)
        self._values: dict[tuple[str, str], Value] = {}

    # --- what a family says ---

    @abstractmethod
    def leaf(self, node: Node) -> Value | None:
        """Return the value of a node that is no pointwise operation; None where it is one."""

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
        is_name = value.text.isidentifier() or (value.level, value.binding) == (Level.PROGRAM, ATOM)
        if is_name or (self._uses[node.name] < 2 and len(value.text) <= MAX_EXPRESSION):
            return value
        return self.bind(value, node.name)

    def _converted(self, node: Node, kind: str) -> Value:
        own = kind_of(node.dtype)
        if kind == "float" and own == "int" and self._is_float_arithmetic(node):
            return self.pointwise(node, "float")
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
        if node.op in RULES:
            return RULES[node.op](self, node)
        if node.op not in FORMS:
            raise unsupported(node, "no template lowers it")
        return self.pointwise(node, None)

    def pointwise(self, node: Node, kind: str | None) -> Value:
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
            operands[0] = self.named(operands[0], node.name)
        return self.combine(form, operands, node.name)

    def named(self, value: Value, base: str) -> Value:
        """Return `value` as a name, so that a text may repeat it."""
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

    def is_nonnegative(self, arg: Arg) -> bool:
        """Whether `arg` is known to be at least 0: Triton's // and % agree with Python's there."""
        number = self.number(arg)
        return number is not None and number >= 0

    def number(self, arg: Arg) -> float | None:
        """Return the value of a literal or constant node, else None."""
        if arg.node is None:
            return None if arg.value is None else float(arg.value)
        node = self.nodes[arg.node]
        if node.op == "constant":
            return float(node.attrs["value"])
        return self.number(node.args[0]) if node.op == "cast" else None


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
