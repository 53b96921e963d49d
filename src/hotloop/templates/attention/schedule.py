"""The schedule space of the attention template, and the points to begin with.

Every dimension is a choice that generated source shows at its top. What a choice costs in shared
memory is checked by the compiler, not here; choices that can never fit are left out.
"""

from __future__ import annotations

from hotloop.core.space import Dimension, Point, Scalar, Space
from hotloop.templates.attention.plan import ELEMENT_BYTES, AttentionPlan

TMA_ALIGNMENT_BYTES = 16
"""Rows of a tensor read by the tensor memory accelerator start at multiples of this (CUDA driver
API, cuTensorMapEncodeTiled)."""


def attention_space(plan: AttentionPlan) -> Space:
    """Return the dimensions that make sense for `plan`, and its starting points."""
    dimensions = [*_tile_dimensions(plan), _loads(plan), *_structure_dimensions(plan)]
    dimensions.extend(_precision_dimensions(plan))
    dimensions.append(Dimension(name="maxnreg", choices=(0, 168, 128), ordered=True))
    space = Space(dimensions=tuple(dimensions))
    return Space(dimensions=space.dimensions, starts=_starts(plan, space))


def _pow2_at_least(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()


def _tile_dimensions(plan: AttentionPlan) -> list[Dimension]:
    spec = plan.spec
    is_wide = ELEMENT_BYTES[spec.dtype] == 4
    rows: tuple[int, ...]
    keys: tuple[int, ...]
    stages: tuple[int, ...]
    if is_wide:
        rows, keys, stages = (64, 128, 32), (64, 32), (2, 3)
    elif spec.D > 128:
        rows, keys, stages = (128, 64), (64, 32), (2, 3)
    elif spec.D > 64:
        rows, keys, stages = (128, 64), (128, 64, 32), (3, 2, 4)
    else:
        rows, keys, stages = (128, 64, 256), (128, 64, 32), (3, 2, 4)
    return [
        Dimension(name="BLOCK_M", choices=_capped(rows, spec.S), ordered=True),
        Dimension(name="BLOCK_N", choices=_capped(keys, spec.Skv), ordered=True),
        Dimension(name="num_warps", choices=(8, 4), ordered=True),
        Dimension(name="num_stages", choices=stages, ordered=True),
    ]


def _capped(choices: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Leave out tiles over twice the length, keeping at least one; tensor cores need 16 rows."""
    limit = max(_pow2_at_least(length), 16)
    kept = tuple(c for c in choices if c <= limit)
    return kept or (limit,)


def _loads(plan: AttentionPlan) -> Dimension:
    row_bytes = plan.spec.D * ELEMENT_BYTES[plan.spec.dtype]
    fits = row_bytes % TMA_ALIGNMENT_BYTES == 0
    return Dimension(name="loads", choices=("tma", "pointer") if fits else ("pointer",))


def _structure_dimensions(plan: AttentionPlan) -> list[Dimension]:
    if plan.mask is None:
        return [
            Dimension(name="tiles", choices=("closed",)),
            Dimension(name="grid_order", choices=("rows", "heads")),
        ]
    is_closed = plan.region.is_exact
    structures = ("closed", "ranges", "lists") if is_closed else ("ranges", "lists", "closed")
    return [
        Dimension(name="tiles", choices=structures),
        Dimension(
            name="full_tiles", choices=("apart", "masked"), when={"tiles": ("closed", "ranges")}
        ),
        Dimension(
            name="grid_order",
            choices=("rows_reversed", "heads_reversed", "rows"),
            when={"tiles": ("closed",)},
        ),
        Dimension(
            name="row_order", choices=("sorted", "rows"), when={"tiles": ("ranges", "lists")}
        ),
    ]


def _precision_dimensions(plan: AttentionPlan) -> list[Dimension]:
    dimensions: list[Dimension] = []
    if plan.uses_tanh:
        fast = () if plan.spec.dtype == "float32" else ("approx",)
        dimensions.append(Dimension(name="tanh", choices=(*fast, "exp2", "exact")))
    if plan.can_skip_running_max:
        dimensions.append(Dimension(name="running_max", choices=("online", "none")))
    if plan.spec.dtype == "float32":
        dimensions.append(Dimension(name="dot_precision", choices=("tf32x3", "ieee")))
    return dimensions


def _starts(plan: AttentionPlan, space: Space) -> tuple[Point, ...]:
    """Return a few schedules that are good on most problems, best guess first."""
    spec = plan.spec
    if ELEMENT_BYTES[spec.dtype] == 4:
        tiles = [(64, 64, 4, 2), (128, 32, 8, 2), (64, 32, 4, 2)]
    elif spec.D > 128:
        tiles = [(128, 64, 8, 2), (64, 64, 4, 2), (128, 32, 8, 3)]
    elif spec.D > 64:
        tiles = [(128, 128, 8, 3), (128, 64, 8, 3), (64, 64, 4, 3)]
    else:
        tiles = [(128, 128, 8, 3), (128, 64, 4, 3), (128, 128, 4, 2)]
    starts: list[Point] = []
    for rows, keys, warps, stages in tiles:
        wanted: dict[str, Scalar] = {
            "BLOCK_M": rows, "BLOCK_N": keys, "num_warps": warps, "num_stages": stages,
        }  # fmt: skip
        starts.append(_nearest(space, wanted))
    names = {d.name: d.choices for d in space.dimensions}
    if "tanh" in names:  # one start whose precision no policy can object to
        starts.insert(1, _nearest(space, {**starts[0], "tanh": "exp2"}))
    if "running_max" in names:
        starts.insert(1, _nearest(space, {**starts[0], "running_max": "none"}))
    if starts[0]["tiles"] == "ranges":
        starts.insert(1, _nearest(space, {**starts[1], "full_tiles": "masked"}))
        starts.insert(1, _nearest(space, {**starts[0], "tiles": "lists"}))
    return tuple(starts)


def _nearest(space: Space, wanted: Point) -> Point:
    """Complete `wanted`, replacing values that the space does not offer by its defaults."""
    choices = {d.name: d.choices for d in space.dimensions}
    return space.complete({n: v for n, v in wanted.items() if v in choices.get(n, ())})
