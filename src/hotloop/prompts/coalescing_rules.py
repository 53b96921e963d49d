"""A rule on addresses: does any direction of a block run along neighbouring elements?

Triton lays threads along the direction in which addresses are contiguous, so a transposed tile is
no weakness by itself. An access is named only where the step of every direction is known and none
is short: then each element takes a memory sector of its own. Addresses that go through loads,
comparisons or divisions are not read.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from hotloop.prompts.findings import Finding
from hotloop.prompts.kernel_syntax import Kernel, Values, calls, evaluate, is_call, is_tl, keyword

Steps = dict[int, Values]
"""Direction, counted from the last (-1), -> how many elements apart neighbours lie; none: unknown.
Empty for what is the same in the whole block."""

FAR_ELEMENTS = 8
"""32 bytes, one sector, in float32: below this neighbours share what is fetched."""
MIN_BLOCK = 128
"""Elements of a block; fewer are a handful of values a program, of no weight."""
_TRANSPARENT = ("multiple_of", "max_contiguous", "max_constancy", "cast")


class _Unread(Exception):
    """An address that this reading does not follow."""


def scattered(kernel: Kernel) -> Iterator[Finding]:
    """Yield accesses whose neighbours are far apart in every direction."""
    reader = _Reader(kernel)
    for call in calls(kernel, "load", "store"):
        if not is_tl(call) or not call.args or keyword(call, "boundary_check") is not None:
            continue
        sizes = kernel.blocks(call.args[0]).values()
        if not sizes or math.prod(min(values, default=0) for values in sizes) < MIN_BLOCK:
            continue
        step = reader.shortest_step(call.args[0])
        if step is not None and step >= FAR_ELEMENTS:
            verb = "load" if is_call(call, "load") else "store"
            text = (
                f"neighbouring elements of this {verb} lie {step} elements apart in every "
                "direction, so that each takes a memory transaction of its own: let one direction "
                "of the block run along the contiguous dimension."
            )
            yield Finding("uncoalesced", call.lineno, text)


class _Reader:
    """Follows address arithmetic in one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._open: set[str] = set()
        """Names whose definitions are being read: a pointer that is moved on in a loop."""
        self._scaled = {
            node.target.id
            for node in ast.walk(kernel.function)
            if isinstance(node, ast.AugAssign)
            and isinstance(node.target, ast.Name)
            and not isinstance(node.op, (ast.Add, ast.Sub))
        }

    def shortest_step(self, pointer: ast.expr) -> int | None:
        """Return the shortest step of an address over its directions; None where one is unknown."""
        try:
            steps = {d: values for d, values in self._read(pointer).items() if values != {0}}
        except _Unread:
            return None
        if not steps or not all(steps.values()):
            return None
        return min(abs(value) for values in steps.values() for value in values)

    def _read(self, node: ast.expr) -> Steps:
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Subscript):
            return _placed(self._read(node.value), node.slice)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            sign = 1 if isinstance(node.op, ast.Add) else -1
            return _sum(self._read(node.left), _times(self._read(node.right), frozenset({sign})))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._product(node)
        return self._uniform(node)

    def _name(self, name: str) -> Steps:
        definitions = self._kernel.defined_by.get(name, [])
        if name in self._open or not definitions:
            return {}
        if name in self._scaled:
            raise _Unread
        self._open.add(name)
        try:
            known = [steps for steps in map(self._read, definitions) if steps]
        finally:
            self._open.discard(name)
        if any(steps != known[0] for steps in known[1:]):
            raise _Unread
        return known[0] if known else {}

    def _call(self, node: ast.Call) -> Steps:
        if is_call(node, "arange"):
            return {-1: frozenset({1})}
        if is_call(node, *_TRANSPARENT) and is_tl(node) and node.args:
            return self._read(node.args[0])
        if is_call(node, "to") and isinstance(node.func, ast.Attribute):
            return self._read(node.func.value)
        return self._uniform(node)

    def _product(self, node: ast.BinOp) -> Steps:
        if any(isinstance(n, ast.Name) and n.id in self._open for n in ast.walk(node)):
            raise _Unread
        left, right = self._read(node.left), self._read(node.right)
        if left and right:
            raise _Unread
        return _times(left, self._value(node.right)) or _times(right, self._value(node.left))

    def _value(self, node: ast.expr) -> Values:
        known = evaluate(node, self._kernel.names)
        if not known and isinstance(node, ast.Name):
            definitions = self._kernel.defined_by.get(node.id, [])
            if len(definitions) == 1:
                return evaluate(definitions[0], self._kernel.names)
        return known

    def _uniform(self, node: ast.expr) -> Steps:
        """Return no steps for an expression that is the same in the whole block."""
        for child in ast.iter_child_nodes(node):
            inner = child.value if isinstance(child, ast.keyword) else child
            if isinstance(inner, ast.expr) and self._read(inner):
                raise _Unread
        return {}


def _placed(steps: Steps, index: ast.expr) -> Steps:
    """Return a vector's step in the direction that `[:, None]` and the like give it."""
    if not steps:
        return steps
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    whole = [i for i, part in enumerate(parts) if ast.unparse(part) == ":"]
    rest = [p for p in parts if isinstance(p, ast.Constant) and p.value is None]
    if set(steps) != {-1} or len(whole) != 1 or len(whole) + len(rest) != len(parts):
        raise _Unread
    return {whole[0] - len(parts): steps[-1]}


def _times(steps: Steps, factor: Values) -> Steps:
    return {d: frozenset(a * b for a in values for b in factor) for d, values in steps.items()}


def _sum(left: Steps, right: Steps) -> Steps:
    both = {d: frozenset(a + b for a in left[d] for b in right[d]) for d in left if d in right}
    return {**left, **right, **both}
