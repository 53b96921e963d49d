"""Closed forms of a mask: which keys some row, and which keys every row, of a query tile may see.

A mask made of comparisons of affine expressions in q and kv (with constants and per-head numbers),
joined by and, or and not, is turned into loop bounds. For a tile of rows [q_first, q_last] the
result has two spans of keys:

- `some`: a superset of the keys that any row may see. Tiles outside it are skipped.
- `every`: a subset of the keys that all rows may see. Tiles inside it need no mask.

Both are safe for every mask: what is not understood makes `some` larger and `every` smaller. Where
nothing was lost, `is_exact` says so, and there is nothing left for a tile map to gain.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hotloop.core.graph import Arg, Node
from hotloop.templates.analysis import PROGRAM_AXES, ScalarGraph
from hotloop.templates.attention.span import (
    EVERYTHING,
    NO_LIMIT,
    NOTHING,
    UNDERSTOOD_NOTHING,
    ZERO,
    Affine,
    Choice,
    Linear,
    Region,
    Span,
    intersect,
    unite,
)

_NEGATION = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}


class RegionFinder:
    """Finds the region of one mask_mod."""

    def __init__(self, mask: ScalarGraph) -> None:
        self._mask = mask
        self._memo: dict[tuple[str, bool], Region] = {}

    def find(self) -> Region:
        """Return the region of the whole mask."""
        return self._node(self._mask.output, negated=False)

    def _arg(self, arg: Arg, *, negated: bool) -> Region:
        if arg.node is not None:
            return self._node(arg.node, negated=negated)
        return EVERYTHING if bool(arg.value) != negated else NOTHING

    def _node(self, name: str, *, negated: bool) -> Region:
        key = (name, negated)
        if key not in self._memo:
            self._memo[key] = self._find(self._mask.node[name], negated=negated)
        return self._memo[key]

    def _find(self, node: Node, *, negated: bool) -> Region:
        args = node.args
        if node.op == "logical_not":
            return self._arg(args[0], negated=not negated)
        if node.op == "cast" and node.dtype == "bool":
            return self._arg(args[0], negated=negated)
        if node.op in ("logical_and", "logical_or"):
            parts = [self._arg(a, negated=negated) for a in args]
            return intersect(*parts) if (node.op == "logical_and") != negated else unite(*parts)
        if node.op == "where":
            chosen = intersect(
                self._arg(args[0], negated=False), self._arg(args[1], negated=negated)
            )
            other = intersect(self._arg(args[0], negated=True), self._arg(args[2], negated=negated))
            return unite(chosen, other)
        if node.op == "constant":
            return EVERYTHING if bool(node.attrs["value"]) != negated else NOTHING
        if node.op in _NEGATION:
            op = _NEGATION[node.op] if negated else node.op
            return self._compare(op, args[0], args[1])
        return UNDERSTOOD_NOTHING

    def _compare(self, op: str, left: Arg, right: Arg) -> Region:
        if op == "eq":
            both = [self._compare(o, left, right) for o in ("le", "ge")]
            return intersect(*both)
        if op == "ne":
            return unite(*(self._compare(o, left, right) for o in ("lt", "gt")))
        if op in ("gt", "ge"):
            return self._compare({"gt": "lt", "ge": "le"}[op], right, left)
        split = self._split(op, left, right)
        if split is not None:
            return split
        if op == "lt":  # integers: left < right is left <= right - 1
            return self._at_least_zero(self._difference(right, left, -1))
        return self._at_least_zero(self._difference(right, left, 0))

    def _split(self, op: str, left: Arg, right: Arg) -> Region | None:
        """Take abs, maximum and minimum apart: |x| <= y is x <= y and -x <= y."""
        for side, is_left in ((left, True), (right, False)):
            node = self._mask.node[side.node] if side.node is not None else None
            if node is None or node.op not in ("abs", "maximum", "minimum"):
                continue
            if node.op == "abs":
                return self._split_absolute(op, node, right if is_left else left, is_left)
            pairs = [(a, right) if is_left else (left, a) for a in node.args]
            parts = [self._compare(op, *pair) for pair in pairs]
            return intersect(*parts) if (node.op == "maximum") == is_left else unite(*parts)
        return None

    def _split_absolute(self, op: str, node: Node, other: Arg, is_left: bool) -> Region:
        inner, bound = self._affine(node.args[0]), self._affine(other)
        if inner is None or bound is None:
            return UNDERSTOOD_NOTHING
        shift = Affine(constant=-1 if op == "lt" else 0)
        if is_left:  # |x| <= y
            sides = [bound.plus(inner, -1).plus(shift), bound.plus(inner).plus(shift)]
            return intersect(*(self._at_least_zero(s) for s in sides))
        sides = [inner.plus(bound, -1).plus(shift), inner.times(-1).plus(bound, -1).plus(shift)]
        return unite(*(self._at_least_zero(s) for s in sides))

    def _difference(self, left: Arg, right: Arg, constant: int) -> Affine | None:
        a, b = self._affine(left), self._affine(right)
        if a is None or b is None:
            return None
        return a.plus(b, -1).plus(Affine(constant=constant))

    def _affine(self, arg: Arg) -> Affine | None:
        """Return the affine form of an integer argument; None where it has none."""
        number = self._mask.constant(arg)
        if number is not None:
            is_whole = math.isfinite(number) and float(number).is_integer()
            return Affine(constant=int(number)) if is_whole else None
        if arg.node is None:
            return None
        node = self._mask.node[arg.node]
        if node.op == "index_q":
            return Affine(query=1)
        if node.op == "index_kv":
            return Affine(key=1)
        combined = self._affine_operation(node)
        if combined is not None:
            return combined
        if self._mask.axes[node.name] <= PROGRAM_AXES and node.dtype.startswith(("int", "uint")):
            return Affine(scalars=((1, node.name),))
        return None

    def _affine_operation(self, node: Node) -> Affine | None:
        if node.op == "cast":
            exact = node.dtype in ("int32", "int64", "float32", "float64")
            return self._affine(node.args[0]) if exact else None
        if node.op == "neg":
            inner = self._affine(node.args[0])
            return None if inner is None else inner.times(-1)
        if node.op not in ("add", "sub", "mul"):
            return None
        a, b = (self._affine(x) for x in node.args)
        if a is None or b is None:
            return None
        if node.op == "mul":
            for one, other in ((a, b), (b, a)):
                if one == Affine(constant=one.constant):
                    return other.times(one.constant)
            return None
        return a.plus(b, 1 if node.op == "add" else -1)

    def _at_least_zero(self, form: Affine | None) -> Region:
        """Return where form >= 0: a half-line of keys, or a condition on rows."""
        if form is None or abs(form.key) > 1:
            return UNDERSTOOD_NOTHING
        rest = replace(form, key=0)
        if form.key == 0:
            best = Linear(rest, at_last=rest.query >= 0)
            worst = Linear(rest, at_last=rest.query < 0)
            if rest.query == 0 and not rest.scalars:
                return EVERYTHING if rest.constant >= 0 else NOTHING
            return Region(
                some=Span(high=Choice(best, NO_LIMIT, ZERO)),
                every=Span(high=Choice(worst, NO_LIMIT, ZERO)),
                is_exact=True,
            )
        if form.key < 0:  # kv <= rest
            end = rest.plus(Affine(constant=1))
            return Region(
                some=Span(high=Linear(end, at_last=end.query >= 0)),
                every=Span(high=Linear(end, at_last=end.query < 0)),
                is_exact=True,
            )
        start = rest.times(-1)  # kv >= -rest
        return Region(
            some=Span(low=Linear(start, at_last=start.query < 0)),
            every=Span(low=Linear(start, at_last=start.query >= 0)),
            is_exact=True,
        )
