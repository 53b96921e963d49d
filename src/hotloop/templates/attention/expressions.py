"""The expressions of one attention kernel: score, mask and loop bounds, lowered and in order."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.templates.attention.bounds import BoundWriter, scalar_nodes
from hotloop.templates.attention.linear_bias import linear_form
from hotloop.templates.attention.lowering import AttentionLowering, ScoreForm, Tile, write_score
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.score import LOG2_E
from hotloop.templates.operators import AND, COMPARE, MULTIPLY, literal
from hotloop.templates.source import reserved_names
from hotloop.templates.value import Level, Names

PORTABLE = ("attention/kernel.py.jinja", "attention/tile_map.py.jinja")
"""The templates of the portable kernel."""


def _names(plan: AttentionPlan, templates: tuple[str, ...]) -> Names:
    reserved = reserved_names(*templates)
    return Names(reserved | {"q_last", "k", "v"} | {b.name + "_ptr" for b in plan.spec.buffers})


@dataclass(frozen=True, slots=True)
class Expressions:
    """The lowered score and mask of the main kernel."""

    form: ScoreForm
    program_lines: list[str]
    """Statements before the loops, on numbers of the program."""
    row_lines: list[str]
    """Statements before the loops, on the rows; they may use the former."""
    score_lines: list[str]
    """Statements of the score inside the loops: on the keys alone, then on pairs."""
    mask_lines: list[str]
    column_lines: list[str]
    """Those of both that are on the keys alone."""
    keep: str
    bound_lines: list[str]
    buffers: list[str]
    calls: frozenset[str]

    @property
    def outer_lines(self) -> list[str]:
        """All statements before the loops."""
        return self.program_lines + self.row_lines


@dataclass(frozen=True, slots=True)
class MapExpressions:
    """The lowered mask of the kernel that maps the tiles."""

    outer_lines: list[str]
    loop_lines: list[str]
    keep: str
    buffers: list[str]
    calls: frozenset[str]


class _Collector:
    """Gathers what the lowerings of one kernel share: statements before the loops and buffers."""

    def __init__(self) -> None:
        self.per_program: list[str] = []
        self.per_row: list[str] = []
        self.columns: list[str] = []
        self.buffers: dict[str, None] = {}
        self.calls: set[str] = set()

    def take(self, lowering: AttentionLowering) -> list[str]:
        """Keep the statements before the loops and return those inside."""
        self.per_program += lowering.sections[Level.PROGRAM]
        self.per_row += lowering.sections[Level.ROW]
        self.buffers.update(lowering.buffers)
        self.calls.update(lowering.calls)
        self.columns += lowering.sections[Level.COLUMN]
        return lowering.sections[Level.COLUMN] + lowering.sections[Level.ELEMENT]


def lower_main(
    plan: AttentionPlan,
    tile: Tile,
    *,
    with_bounds: bool,
    templates: tuple[str, ...] = PORTABLE,
    takes_slope: bool = False,
) -> Expressions:
    """Lower the score, the mask, and with `with_bounds` the loop bounds, of the main kernel.

    Args:
        plan: the problem.
        tile: what of the tiling the expressions depend on.
        with_bounds: whether loops have closed-form bounds.
        templates: what the expressions go into; they avoid the names there.
        takes_slope: whether a bias that is linear in the key may be left to the template, which
            then gets a `LinearForm`.
    """
    names, common = _names(plan, templates), _Collector()
    form = ScoreForm("qk", literal(plan.spec.scale * LOG2_E))
    score_lines: list[str] = []
    mask_lines: list[str] = []
    if plan.score is not None:
        scoring = AttentionLowering(plan.score, plan.spec, names, tile)
        linear = linear_form(scoring, plan.terms) if takes_slope else None
        form = linear or write_score(scoring, plan.terms)
        score_lines = common.take(scoring)
    keep = ["(kv_idx < KV_LEN)"] * tile.has_ragged_keys
    scalars: dict[str, str] = {}
    if plan.mask is not None:
        masking = AttentionLowering(plan.mask, plan.spec, names, tile)
        value = masking.value(plan.mask.output, "bool")
        keep.insert(0, masking.text(value, AND if keep else COMPARE))
        if with_bounds:
            scalars = {n: _bound_scalar(masking, n) for n in scalar_nodes(plan.region)}
        mask_lines = common.take(masking)
    bounds = BoundWriter(plan.spec, scalars.__getitem__)
    return Expressions(
        form=form,
        program_lines=common.per_program,
        row_lines=common.per_row,
        score_lines=score_lines,
        mask_lines=mask_lines,
        column_lines=common.columns,
        keep=" & ".join(keep),
        bound_lines=bounds.lines(plan.region) if with_bounds else [],
        buffers=list(common.buffers),
        calls=frozenset(common.calls),
    )


def _bound_scalar(lowering: AttentionLowering, name: str) -> str:
    """Return a scalar for loop bounds; key numbers are 32-bit whatever a buffer holds."""
    text = lowering.text(lowering.value(name), MULTIPLY)
    return f"({text}).to(tl.int32)" if lowering.nodes[name].dtype == "int64" else text


def lower_map(
    plan: AttentionPlan, tile: Tile, *, templates: tuple[str, ...] = PORTABLE
) -> MapExpressions:
    """Lower the mask for the kernel that maps the tiles, in a file made from `templates`."""
    assert plan.mask is not None
    lowering = AttentionLowering(plan.mask, plan.spec, _names(plan, templates), tile)
    keep = lowering.text(lowering.value(plan.mask.output, "bool"))
    outer = lowering.sections[Level.PROGRAM] + lowering.sections[Level.ROW]
    loop = lowering.sections[Level.COLUMN] + lowering.sections[Level.ELEMENT]
    return MapExpressions(outer, loop, keep, list(lowering.buffers), frozenset(lowering.calls))
