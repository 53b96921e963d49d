"""The head of a generated attention kernel: what it computes and what analysis found."""

from __future__ import annotations

from hotloop.core.space import Point
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.token_order import TokenOrder

TITLE = "Attention forward, one pass over the keys, generated for the sizes below."


def notes(
    plan: AttentionPlan, point: Point, order: TokenOrder | None, *, is_linear: bool = False
) -> list[str]:
    """Return the lines below the title, each under 100 characters.

    Args:
        plan: the problem.
        point: the schedule.
        order: how tokens are dealt out to tiles, where not in their own order.
        is_linear: whether the kernel knows a bias that is linear in the key as such.
    """
    spec = plan.spec
    heads = f"H {spec.H}" if spec.Hkv == spec.H else f"H {spec.H} (k and v: {spec.Hkv})"
    length = f"S {spec.S}" if spec.Skv == spec.S else f"S {spec.S}, {spec.Skv} keys"
    lines = [
        f"Sizes      B {spec.B}, {heads}, {length}, D {spec.D}, {spec.dtype}, {spec.normalize}",
        f"Score      {_score_note(plan, is_linear=is_linear)}",
        f"Mask       {_mask_note(plan, str(point['tiles']))}",
    ]
    if order is not None:
        grid = " x ".join(str(digit.extent) for digit in order.query.digits)
        lines.append(f"Tokens     {grid}; a tile is a box: {order.query} queries, {order.key} keys")
    if "tanh" in point:
        lines.append(f"Precision  tanh by {point['tanh']}")
    if "dot_precision" in point:
        lines.append(f"Precision  products in {point['dot_precision']}")
    return lines


def _score_note(plan: AttentionPlan, *, is_linear: bool) -> str:
    if plan.score is None:
        return "no modification"
    terms = plan.terms
    parts = []
    if terms.dropped:
        count = len(terms.dropped)
        parts.append(f"{count} term{'s' if count > 1 else ''} without the key cancel in softmax")
    if is_linear:
        parts.append("a bias linear in the key goes into the exponent")
    elif terms.affine or terms.column:
        parts.append("terms in the key alone are made once a column")
    if terms.element:
        parts.append("the rest is made for each score")
    return "; ".join(parts) or "a multiple of the score"


def _mask_note(plan: AttentionPlan, tiles: str) -> str:
    if plan.mask is None:
        return "none"
    return {
        "closed": "skipped and full tiles by loop bounds",
        "ranges": "skipped and full tiles by ranges that prepare() finds",
        "lists": "skipped and full tiles by lists that prepare() makes",
    }[tiles]
