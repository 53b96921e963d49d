"""Closed forms of a mask: which keys some row, and which keys every row, of a query tile may see.

A mask made of comparisons of affine expressions in q and kv (with constants and per-head numbers,
and clamped at such expressions), joined by and, or and not, is turned into loop bounds. For a tile
of rows [q_first, q_last] the result has two spans of keys:

- `some`: a superset of the keys that any row may see. Tiles outside it are skipped.
- `every`: a subset of the keys that all rows may see. Tiles inside it need no mask.

Both are safe for every mask: what is not understood makes `some` larger and `every` smaller. Where
nothing was lost, `is_exact` says so, and there is nothing left for a tile map to gain.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from hotloop.core.graph import Arg, Node
from hotloop.templates.analysis import ScalarGraph
from hotloop.templates.attention.forms import MAX_LEAVES, Form, FormReader, leaves, plus, times
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
        self._reader = FormReader(mask)
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
        difference = plus(self._reader.form(right), times(self._reader.form(left), -1))
        if op == "lt":  # integers: left < right is left <= right - 1
            difference = plus(difference, Affine(constant=-1))
        if leaves(difference) > MAX_LEAVES:
            return UNDERSTOOD_NOTHING
        return self._at_least_zero(difference)

    def _at_least_zero(self, form: Form) -> Region:
        """Return where form >= 0: the largest part is where any is, the smallest where all are."""
        if form is None:
            return UNDERSTOOD_NOTHING
        if isinstance(form, Affine):
            return _affine_at_least_zero(form)
        regions = [self._at_least_zero(part) for part in form.parts]
        return reduce(unite if form.largest else intersect, regions)


def _affine_at_least_zero(form: Affine) -> Region:
    """Return where form >= 0: a half-line of keys, or a condition on rows."""
    if abs(form.key) > 1:
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
