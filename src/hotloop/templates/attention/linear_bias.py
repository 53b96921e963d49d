"""A score that is a multiple of q k^T plus a bias linear in the key, as ALiBi's and a relative one.

Softmax does not need the exact maximum of a row, only a number not below it and not so far above
that weights vanish. A kernel may therefore take the maximum over the bare products and add the
bias of a whole group of keys to it, and bring in each key's own bias only with the exponent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hotloop.templates.attention.lowering import AttentionLowering, ScoreForm, log2, sum_text
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.score import LOG2_E, ScoreSum, Term
from hotloop.templates.operators import ADD, MULTIPLY, literal
from hotloop.templates.value import Level, Value

MAX_EXCESS_LOG2 = 64.0
"""How far above the true maximum the one in use may be. Weights are then at least 2**-64 for the
largest score, of 2**-126 that float32 and bfloat16 hold: what is lost is under 2**-62 of a row."""

STRIDE = 8
"""Keys between two of one thread: what is compared without a bias lies so far apart."""

MIN_GROUP = 16
"""Keys of the smallest group that spares something."""

MAX_SLOPE_LOG2 = MAX_EXCESS_LOG2 / (MIN_GROUP - STRIDE)


@dataclass(frozen=True, slots=True)
class LinearForm(ScoreForm):
    """Exponents of 2 are x * scale + slope * (kv_idx - q_first)."""

    slope: str
    """A number, or the name of one number per program, in units of log2 per key."""
    is_number: bool
    magnitude: float
    """The largest absolute slope of all programs; at most `MAX_SLOPE_LOG2`."""

    def group(self, block_n: int) -> int:
        """Return how many keys may share a bias in the maximum: a power of two, `MIN_GROUP` up."""
        group = MIN_GROUP
        while 2 * group <= block_n and self.magnitude * (2 * group - STRIDE) <= MAX_EXCESS_LOG2:
            group *= 2
        return group


def may_exceed(plan: AttentionPlan) -> bool:
    """Whether weights keep their digits far below 1: float16 ends at 2**-24."""
    return plan.is_softmax and plan.spec.dtype != "float16"


def linear_form(lowering: AttentionLowering, terms: ScoreSum) -> LinearForm | None:
    """Write what the slope needs and return the form; None, with nothing written, for others."""
    others = terms.column + terms.element + terms.row
    if len(terms.score) != 1 or terms.score[0].scalars or others or not terms.affine:
        return None
    magnitude = sum(_magnitude(lowering, term) for term in terms.affine) * LOG2_E
    scale = terms.score[0].factor * lowering.scale * LOG2_E
    if scale <= 0 or not 0 < magnitude <= MAX_SLOPE_LOG2:
        return None
    if not any(term.scalars for term in terms.affine):
        slope = literal(sum(term.factor for term in terms.affine) * LOG2_E)
        return LinearForm("qk", literal(scale), slope, True, magnitude)
    text = sum_text(lowering, [log2(_factor(lowering, term)) for term in terms.affine])
    slope = lowering.bind(Value(text, "float", Level.PROGRAM, ADD), "slope").text
    return LinearForm("qk", literal(scale), slope, False, magnitude)


def _magnitude(lowering: AttentionLowering, term: Term) -> float:
    sizes = [lowering.interval(name).magnitude for name in term.scalars]
    return abs(term.factor) * math.prod(sizes)


def _factor(lowering: AttentionLowering, term: Term) -> Value:
    """Return what a term multiplies the key with."""
    if not term.scalars:
        return Value(literal(1.0), "float", Level.PROGRAM, coefficient=term.factor)
    factors = [lowering.value(name, "float") for name in term.scalars]
    text = " * ".join(lowering.text(f, MULTIPLY) for f in factors)
    return Value(text, "float", Level.PROGRAM, MULTIPLY, term.factor)
