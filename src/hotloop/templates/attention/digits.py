"""Digits of token numbers that a mask reads: rows and columns of an image, residue classes.

A mask on images works with `q // W` and `q % W`, a dilated one with `(q - kv) % d`: it sees a token
number as digits of a mixed radix. Which digits these are decides how tokens are best gathered into
tiles (`token_order`); that order is right for any mask, so nothing here has to be proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hotloop.core.graph import Arg, Graph, Node
from hotloop.templates.analysis import ScalarGraph
from hotloop.templates.attention.normalize import without_dead_nodes


@dataclass(frozen=True, slots=True)
class Digit:
    """`token // place % extent`."""

    place: int
    extent: int
    is_class: bool
    """Whether the mask keeps only pairs of one difference in it, as a rule none."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A digit of q, of kv, or the difference of both; without `extent` all from `place` up."""

    place: int
    extent: int | None
    sides: frozenset[str]
    is_absolute: bool = False
    """Whether it is the absolute value of a difference, or comes from one."""


_LEAVES = {"index_q": "query", "index_kv": "key"}
_EXACT = frozenset({"int32", "int64", "float32", "float64"})
"""What token numbers may be converted to without loss."""


def find_digits(mask: ScalarGraph, length: int) -> tuple[Digit, ...]:
    """Return the digits of tokens 0 to length - 1, highest place first.

    Empty where the mask reads none, or where they do not divide each other and the length.
    """
    reader = _Reader(mask)
    places = sorted({1, *(cut for cut in reader.cuts if cut < length)})
    ends = [*places[1:], length]
    if len(places) == 1 or any(end % place for place, end in zip(places, ends, strict=True)):
        return ()
    classes = [part for _, part in reader.classes()]
    digits = [
        Digit(place, end // place, any(_covers(part, place) for part in classes))
        for place, end in zip(places, ends, strict=True)
    ]
    return tuple(reversed(digits))


def spatial(digits: tuple[Digit, ...]) -> list[int]:
    """Return which of the digits a tile may extend along, highest place first."""
    return [i for i, digit in enumerate(digits) if not digit.is_class]


def without_class_tests(mask: ScalarGraph) -> Graph:
    """Return the mask for pairs of one class: without the comparisons of classes.

    The mask stays as it is where nothing would be left of it.
    """
    tests = {name for name, _ in _Reader(mask).classes()}
    renamed: dict[str, str] = {}
    for node in mask.graph.nodes:
        if node.op != "logical_and":
            continue
        left, right = (renamed.get(a.node, a.node) if a.node else None for a in node.args)
        if left in tests and right in tests:
            tests.add(node.name)
        elif left in tests and right is not None:
            renamed[node.name] = right
        elif right in tests and left is not None:
            renamed[node.name] = left
    if mask.output in tests:
        return mask.graph
    nodes = tuple(
        replace(n, args=tuple(replace(a, node=renamed.get(a.node or "", a.node)) for a in n.args))
        for n in mask.graph.nodes
    )
    output = renamed.get(mask.output, mask.output)
    return without_dead_nodes(Graph(nodes=nodes, outputs=(output,)))


def _covers(part: _Part, place: int) -> bool:
    return part.place <= place and (part.extent is None or place < part.place * part.extent)


class _Reader:
    """Finds which nodes are digits. `cuts` are the places at which a digit begins."""

    def __init__(self, mask: ScalarGraph) -> None:
        self._mask = mask
        self._parts: dict[str, _Part] = {}
        self.cuts: set[int] = set()
        for node in mask.graph.nodes:
            part = self._part(node)
            if part is not None:
                self._parts[node.name] = part

    def _of(self, arg: Arg) -> _Part | None:
        return self._parts.get(arg.node or "")

    def _part(self, node: Node) -> _Part | None:
        if node.op in _LEAVES:
            return _Part(1, None, frozenset({_LEAVES[node.op]}))
        inner = self._of(node.args[0]) if node.args else None
        if inner is None:
            return None
        is_difference = len(inner.sides) == 2
        if (node.op == "cast" and node.dtype in _EXACT) or (node.op == "neg" and is_difference):
            return inner
        if node.op == "abs" and is_difference:
            return replace(inner, is_absolute=True)
        if node.op == "sub":
            other = self._of(node.args[1])
            return _difference(inner, other)
        divisor = self._mask.constant(node.args[1]) if len(node.args) == 2 else None
        if node.op not in ("floordiv", "remainder") or divisor is None or divisor < 2:
            return None
        size = int(divisor)
        if size != divisor or (inner.extent is not None and inner.extent % size):
            return None
        if node.op == "remainder":
            self.cuts |= {inner.place, inner.place * size}
            return replace(inner, extent=size)
        if is_difference:  # no digit: the difference of digits may borrow
            return None
        self.cuts |= {inner.place, inner.place * size}
        extent = None if inner.extent is None else inner.extent // size
        return _Part(inner.place * size, extent, inner.sides)

    def classes(self) -> Iterator[tuple[str, _Part]]:
        """Yield the digits in which all pairs that the mask keeps have one difference.

        Each comes with the node that says so: an operand of a conjunction that is the mask. For
        two classes it is true of all pairs or of none; of absolute differences only zero is so.
        """
        pending = [self._mask.output]
        while pending:
            node = self._mask.node[pending.pop()]
            if node.op == "logical_and":
                pending += [arg.node for arg in node.args if arg.node is not None]
            if node.op != "eq":
                continue
            left, right = (self._of(arg) for arg in node.args)
            for part, other in ((left, node.args[1]), (right, node.args[0])):
                number = self._mask.constant(other)
                if part is None or number is None or len(part.sides) < 2:
                    continue
                if number == 0 or not part.is_absolute:
                    yield node.name, part
            difference = None if left is None else _difference(left, right)
            if difference is not None:
                yield node.name, difference


def _difference(left: _Part, right: _Part | None) -> _Part | None:
    if right is None or left.sides & right.sides:
        return None
    same = (left.place, left.extent) == (right.place, right.extent)
    return _Part(left.place, left.extent, left.sides | right.sides) if same else None
