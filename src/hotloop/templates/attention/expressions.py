"""The expressions of one attention kernel: score, mask and loop bounds, lowered and in order."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.templates.attention.bounds import BoundWriter, scalar_nodes
from hotloop.templates.attention.lowering import AttentionLowering, ScoreForm, Tile, write_score
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.score import LOG2_E
from hotloop.templates.operators import AND, COMPARE, MULTIPLY, literal
from hotloop.templates.source import reserved_names
from hotloop.templates.value import Level, Names


def _names(plan: AttentionPlan) -> Names:
    reserved = reserved_names("attention/kernel.py.jinja", "attention/tile_map.py.jinja")
    return Names(reserved | {"q_last", "k", "v"} | {b.name + "_ptr" for b in plan.spec.buffers})


@dataclass(frozen=True, slots=True)
class Expressions:
    """The lowered score and mask of the main kernel."""

    form: ScoreForm
    outer_lines: list[str]
    """Statements before the loops: per program, then per row."""
    score_lines: list[str]
    mask_lines: list[str]
    keep: str
    bound_lines: list[str]
    buffers: list[str]
    calls: frozenset[str]


@dataclass(frozen=True, slots=True)
class MapExpressions:
    """The lowered mask of the kernel that maps the tiles."""

    outer_lines: list[str]
    loop_lines: list[str]
    keep: str
    buffers: list[str]
    calls: frozenset[str]


def lower_main(plan: AttentionPlan, tile: Tile, *, with_bounds: bool) -> Expressions:
    """Lower the score, the mask, and with `with_bounds` the loop bounds, of the main kernel."""
    names = _names(plan)
    outer: list[str] = []
    per_row: list[str] = []
    buffers: dict[str, None] = {}
    calls: set[str] = set()

    def take(lowering: AttentionLowering) -> list[str]:
        outer.extend(lowering.sections[Level.PROGRAM])
        per_row.extend(lowering.sections[Level.ROW])
        buffers.update(lowering.buffers)
        calls.update(lowering.calls)
        return lowering.sections[Level.COLUMN] + lowering.sections[Level.ELEMENT]

    form, score_lines = ScoreForm("qk", literal(plan.spec.scale * LOG2_E)), []
    if plan.score is not None:
        lowering = AttentionLowering(plan.score, plan.spec, names, tile)
        form = write_score(lowering, plan.terms)
        score_lines = take(lowering)
    keep, mask_lines, bound_lines = [], [], []
    if tile.has_ragged_keys:
        keep.append("(kv_idx < KV_LEN)")
    region = plan.region
    masking: AttentionLowering | None = None
    if plan.mask is not None:
        masking = AttentionLowering(plan.mask, plan.spec, names, tile)
        value = masking.value(plan.mask.output, "bool")
        keep.insert(0, masking.text(value, AND if keep else COMPARE))
    if with_bounds:
        scalars = {}
        if masking is not None:
            scalars = {n: masking.text(masking.value(n), MULTIPLY) for n in scalar_nodes(region)}
        bound_lines = BoundWriter(plan.spec, scalars.__getitem__).lines(region)
    if masking is not None:
        mask_lines = take(masking)
    return Expressions(
        form,
        outer + per_row,
        score_lines,
        mask_lines,
        " & ".join(keep),
        bound_lines,
        list(buffers),
        frozenset(calls),
    )


def lower_map(plan: AttentionPlan, tile: Tile) -> MapExpressions:
    """Lower the mask for the kernel that maps the tiles."""
    assert plan.mask is not None
    names = _names(plan)
    lowering = AttentionLowering(plan.mask, plan.spec, names, tile)
    keep = lowering.text(lowering.value(plan.mask.output, "bool"))
    outer = lowering.sections[Level.PROGRAM] + lowering.sections[Level.ROW]
    loop = lowering.sections[Level.COLUMN] + lowering.sections[Level.ELEMENT]
    return MapExpressions(outer, loop, keep, list(lowering.buffers), frozenset(lowering.calls))
