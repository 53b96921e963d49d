"""The algebra of a score_mod: what of it softmax cancels, and how rarely the rest is computed.

A score_mod that is a sum is taken apart into terms. For softmax a term that does not depend on the
key multiplies numerator and denominator of a row alike, so it is dropped; this is exact as long as
the term is finite. A term that is affine in the key becomes one number per column, counted from the
tile's first row so that its size, and with it its rounding, stays that of the distance. Everything
is in units of log2, because exp2 is what the hardware has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hotloop.core.graph import Arg
from hotloop.templates.analysis import Interval, ScalarGraph

LOG2_E = math.log2(math.e)


@dataclass(frozen=True, slots=True)
class Term:
    """factor * product of scalar nodes * base node (1 where base is None)."""

    factor: float
    base: str | None
    scalars: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreSum:
    """The terms of a score_mod by what they depend on, none of them twice."""

    score: tuple[Term, ...]
    """The bare score, times constants and per-head numbers."""
    affine: tuple[Term, ...]
    """The key index itself, times constants and per-head numbers."""
    column: tuple[Term, ...]
    """Whatever else depends on the key but not on the query."""
    element: tuple[Term, ...]
    """Whatever depends on both, or on the score in another way."""
    row: tuple[Term, ...]
    """Whatever does not depend on the key; empty for softmax."""
    dropped: tuple[Term, ...]
    """What softmax cancels."""

    @property
    def constant_multiple(self) -> Term | None:
        """The only term, where it is a positive constant times one element value."""
        alone = self.score + self.element
        if len(alone) != 1 or self.affine or self.column or self.row:
            return None
        return alone[0] if not alone[0].scalars and alone[0].factor > 0 else None


IDENTITY = ScoreSum((Term(1.0, "score"),), (), (), (), (), ())
"""No score_mod. The base is not looked up: it stands for the score itself."""


def split_score(score: ScalarGraph, *, is_softmax: bool) -> ScoreSum:
    """Take a score_mod apart.

    Without softmax nothing cancels, and differences of query and key stay together: taking them
    apart would cost accuracy and gain nothing.
    """
    groups: dict[str, list[Term]] = {
        name: [] for name in ("score", "affine", "column", "element", "row", "dropped")
    }
    for term in _terms(score, Arg(node=score.output), apart=is_softmax):
        groups[_group_of(score, term, is_softmax=is_softmax)].append(term)
    return ScoreSum(**{name: tuple(terms) for name, terms in groups.items()})


def _group_of(score: ScalarGraph, term: Term, *, is_softmax: bool) -> str:
    if term.base is None:
        return "dropped" if is_softmax else "row"
    axes, node = score.axes[term.base], score.node[term.base]
    if node.op == "score":
        return "score"
    if not axes & {"key", "score"}:
        return "dropped" if is_softmax else "row"
    if node.op == "index_kv" and is_softmax:
        return "affine"
    return "element" if axes & {"query", "score"} else "column"


def _terms(score: ScalarGraph, arg: Arg, *, apart: bool) -> list[Term]:
    """Return the terms of the sum `arg`. `apart`: also split sums of query and key."""
    number = score.constant(arg)
    if number is not None:
        return [Term(float(number), None)]
    if arg.node is None:
        return []
    node = score.node[arg.node]
    if score.is_program_scalar(arg):
        return [Term(1.0, None, (arg.node,))]
    if not apart and "score" not in score.axes[arg.node]:
        return [Term(1.0, arg.node)]
    if node.op == "cast" and node.dtype in ("float32", "float64"):
        inner = node.args[0].node
        if inner is not None and score.node[inner].dtype not in ("bool", "bfloat16", "float16"):
            return _terms(score, node.args[0], apart=apart)
    if node.op in ("add", "sub"):
        left, right = (_terms(score, a, apart=apart) for a in node.args)
        sign = 1.0 if node.op == "add" else -1.0
        return left + [replace(t, factor=sign * t.factor) for t in right]
    if node.op == "neg":
        return [replace(t, factor=-t.factor) for t in _terms(score, node.args[0], apart=apart)]
    if node.op in ("mul", "div") and node.dtype.startswith(("float", "int")):
        product = _distribute(score, node.op, node.args[0], node.args[1], apart=apart)
        if product is not None:
            return product
    return [Term(1.0, arg.node)]


def _distribute(
    score: ScalarGraph, op: str, left: Arg, right: Arg, *, apart: bool
) -> list[Term] | None:
    """Multiply a sum by one number per program; None where neither operand is one."""
    if op == "mul" and score.is_program_scalar(left):
        left, right = right, left
    if not score.is_program_scalar(right):
        return None
    number = score.constant(right)
    terms = _terms(score, left, apart=apart)
    if number is not None:
        if op == "div" and number == 0:
            return None
        factor = float(number) if op == "mul" else 1.0 / float(number)
        return [replace(t, factor=t.factor * factor) for t in terms]
    if op == "div" or right.node is None:
        return None
    return [replace(t, scalars=(*t.scalars, right.node)) for t in terms]


def bound_log2(score: ScalarGraph, terms: ScoreSum) -> float:
    """Return an upper bound of |score| in units of log2, infinity where there is none."""
    if terms.affine:
        return math.inf
    total = 0.0
    for term in terms.score + terms.column + terms.element + terms.row:
        size = abs(term.factor)
        for name in (*term.scalars, *((term.base,) if term.base else ())):
            interval: Interval = score.interval[name]
            size = size * interval.magnitude if size and interval.magnitude else 0.0
        total += size
    return total * LOG2_E
