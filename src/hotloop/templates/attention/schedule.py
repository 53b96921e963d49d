"""The schedule space of the attention template, and the points to begin with.

Every dimension is a choice that generated source shows at its top. What a choice costs in shared
memory is checked by the compiler, not here; choices that can never fit are left out.
"""

from __future__ import annotations

from hotloop.core.space import Dimension, Point, Scalar, Space
from hotloop.errors import UnsupportedOp
from hotloop.templates.attention.digits import find_digits, spatial
from hotloop.templates.attention.plan import ELEMENT_BYTES, AttentionPlan
from hotloop.templates.attention.token_order import SHAPES, box_of
from hotloop.templates.dot_precision import DOT_PRECISION, dot_precision, on_tensor_cores

TMA_ALIGNMENT_BYTES = 16
"""Rows of a tensor read by the tensor memory accelerator start at multiples of this (CUDA driver
API, cuTensorMapEncodeTiled)."""

WIDE_ROW_BYTES = 1024
"""A longer row of q, k or v leaves no room for tiles of 64 queries and 32 keys."""

SHARED_BYTES = 225 * 1024
"""What starts may use: 227 KiB a block on sm_90, less the barriers."""


def attention_space(plan: AttentionPlan) -> Space:
    """Return the dimensions that make sense for `plan`, and its starting points."""
    dimensions = [*_tile_dimensions(plan), *_precision_dimensions(plan), _loads(plan)]
    dimensions.extend(_structure_dimensions(plan))
    dimensions.extend(_token_order(plan, dimensions))
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
    if _row_bytes(plan) > WIDE_ROW_BYTES:
        rows, keys, stages = _fitting(plan, (32, 16), 16, (2, 1))
    elif is_wide:
        rows, keys, stages = (64, 128, 32), (64, 32), (2, 3)
    elif spec.D > 256:
        rows, keys, stages = _fitting(plan, (64, 32), 32, (2, 1))
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


def _row_bytes(plan: AttentionPlan) -> int:
    """Return what a row of q, k or v takes in shared memory."""
    return _pow2_at_least(plan.spec.D) * ELEMENT_BYTES[plan.spec.dtype]


def _fitting(
    plan: AttentionPlan, rows: tuple[int, ...], keys: int, stages: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the rows and stages for very large heads, `keys` a step, that shared memory holds.

    Raises:
        UnsupportedOp: it holds none.
    """
    row_bytes = _row_bytes(plan)
    room = {(r, s) for r in rows for s in stages if row_bytes * (r + 2 * keys * s) <= SHARED_BYTES}
    if not room:
        least_kib = row_bytes * (min(rows) + 2 * keys * min(stages)) // 1024
        raise UnsupportedOp(
            f"head size D={plan.spec.D} in {plan.spec.dtype}: the smallest tiles of q, k and v "
            f"take {least_kib} KiB of shared memory, a block has {SHARED_BYTES // 1024} KiB; make "
            "D smaller or use a model to write a kernel that splits it"
        )
    return tuple(sorted({r for r, _ in room}, reverse=True)), (keys,), stages


def _capped(choices: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Leave out tiles over twice the length, keeping at least one; tensor cores need 16 rows."""
    limit = max(_pow2_at_least(length), 16)
    kept = tuple(c for c in choices if c <= limit)
    return kept or (limit,)


def _loads(plan: AttentionPlan) -> Dimension:
    row_bytes = plan.spec.D * ELEMENT_BYTES[plan.spec.dtype]
    if row_bytes % TMA_ALIGNMENT_BYTES != 0:
        return Dimension(name="loads", choices=("pointer",))
    if plan.spec.dtype != "float32":
        return Dimension(name="loads", choices=("tma", "pointer"))
    # Products on the float32 units read their operands through registers: TMA makes them spill.
    when = {DOT_PRECISION: on_tensor_cores(dot_precision(allows_tf32=plan.allows_tf32))}
    return Dimension(name="loads", choices=("pointer", "tma"), when=when)


def _structure_dimensions(plan: AttentionPlan) -> list[Dimension]:
    if plan.mask is None:
        return [
            Dimension(name="tiles", choices=("closed",)),
            Dimension(name="grid_order", choices=("rows", "heads")),
        ]
    if plan.region.is_exact:
        structures = ("closed", "ranges", "lists")
    elif find_digits(plan.mask, plan.spec.S):  # the tiles that rows need are in many runs
        structures = ("lists", "ranges", "closed")
    else:
        structures = ("ranges", "lists", "closed")
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


def _token_order(plan: AttentionPlan, dimensions: list[Dimension]) -> list[Dimension]:
    """Return the choice of boxes, for the tile sizes into which the tokens divide."""
    choices = {d.name: d.choices for d in dimensions}
    boxes = {
        name: {n: box for n in choices[name] if (box := box_of(plan, axis, int(n))) is not None}
        for name, axis in (("BLOCK_M", "query"), ("BLOCK_N", "key"))
    }
    if not all(boxes.values()):
        return []
    if all(box.is_consecutive for found in boxes.values() for box in found.values()):
        return []
    digits = next(box.digits for box in boxes["BLOCK_M"].values())
    is_image = len(spatial(digits)) > 1
    when: dict[str, tuple[Scalar, ...]] = {name: tuple(found) for name, found in boxes.items()}
    when["tiles"] = ("lists",) if is_image else ("lists", "ranges")
    shapes = SHAPES if is_image else SHAPES[:1]
    return [Dimension(name="token_order", choices=("rows", *shapes), when=when)]


def _precision_dimensions(plan: AttentionPlan) -> list[Dimension]:
    dimensions: list[Dimension] = []
    if plan.uses_tanh:
        fast = () if plan.spec.dtype == "float32" else ("approx",)
        dimensions.append(Dimension(name="tanh", choices=(*fast, "exp2", "exact")))
    if plan.can_skip_running_max:
        dimensions.append(Dimension(name="running_max", choices=("online", "none")))
    if plan.spec.dtype == "float32":
        dimensions.append(dot_precision(allows_tf32=plan.allows_tf32))
    return dimensions


def _starts(plan: AttentionPlan, space: Space) -> tuple[Point, ...]:
    """Return a few schedules that are good on most problems, best guess first.

    The tiles are those at which the compiler (Triton 3.6, sm_90a) neither spills nor runs out of
    shared memory.
    """
    starts = [_nearest(space, tile) for tile in _start_tiles(plan)]
    starts = [start for start in starts if shared_bytes(plan, start) <= SHARED_BYTES] or starts[-1:]
    starts[1:1] = [_nearest(space, v) for v in _variations(space, starts)]
    if any(d.name == "token_order" for d in space.dimensions):
        starts = [_nearest(space, v) for v in _in_boxes(starts)]
    unique: list[Point] = []
    for start in starts:
        if start not in unique:
            unique.append(start)
    return tuple(unique)


def _variations(space: Space, starts: list[Point]) -> list[Point]:
    """Return what is tried beside the first start."""
    choices = {d.name: d.choices for d in space.dimensions}
    first = starts[0]
    variations: list[Point] = []
    if "running_max" in choices:
        variations.append({**first, "running_max": "none"})
    if first.get("tanh") == "approx":  # a start whose precision no policy can object to
        variations.append({**first, "tanh": "exp2"})
    if first["tiles"] == "ranges":
        variations.append({**first, "tiles": "lists"})
        variations.append({**starts[min(1, len(starts) - 1)], "full_tiles": "masked"})
    return variations


def _in_boxes(starts: list[Point]) -> list[Point]:
    """Return starts for masks on images or residue classes: boxes, and one that has rows.

    Most tiles are masked then, which takes registers: none are given up for a second block.
    """
    fixed: Point = {"tiles": "lists", "token_order": SHAPES[0], "maxnreg": 0}
    boxed: list[Point] = [{**start, **fixed} for start in starts]
    wide: Point = {**boxed[-1], "token_order": SHAPES[1]}
    return [*boxed, wide, {**starts[0], "tiles": "lists"}]


def _start_tiles(plan: AttentionPlan) -> list[Point]:
    """Return tiles, warps, stages and register limits to begin with.

    For 16-bit inputs and heads up to 128 they were chosen from a sweep over six variants on an
    H200: three are enough to begin with, because which schedule is good depends more on the head
    size than on the modification.
    """
    spec = plan.spec
    tiles: list[tuple[int, ...]]
    if _row_bytes(plan) > WIDE_ROW_BYTES:
        tiles = [(32, 16, 8, 2), (16, 16, 8, 1)]
    elif spec.dtype == "float32":
        tiles = [(128, 32, 8, 2), (64, 32, 4, 2)]
    elif spec.D > 256:
        tiles = [(64, 32, 8, 2), (32, 32, 4, 2)]
    elif spec.D > 128:
        tiles = [(128, 64, 8, 2), (128, 32, 8, 3), (64, 64, 4, 2)]
    elif spec.D > 64:
        tiles = [(128, 128, 8, 3), (64, 64, 4, 3), (128, 64, 8, 2, 128)]
    else:
        tiles = [(128, 64, 4, 3), (64, 64, 4, 4), (128, 64, 8, 3)]
    names = ("BLOCK_M", "BLOCK_N", "num_warps", "num_stages", "maxnreg")
    points: list[Point] = [dict(zip(names, tile, strict=False)) for tile in tiles]
    if spec.dtype == "float32":
        rows = 64 if spec.D <= 64 else 32
        exact = dict(zip(names, (rows, 32, 8, 2), strict=False))
        if plan.allows_tf32:  # one product in place of three leaves registers for more keys
            wide: Point = dict(zip(names, (128, 64, 8, 2), strict=False))
            points = [wide, *points, {**points[0], DOT_PRECISION: "tf32x3"}]
        points.append({**exact, DOT_PRECISION: "ieee"})
    return points


def shared_bytes(plan: AttentionPlan, point: Point) -> int:
    """Estimate the shared memory of a program: q, the stages of k and v, and of gathers.

    Values gathered for each score are kept in flight as k and v are.
    """
    rows, keys, stages = (int(point[n]) for n in ("BLOCK_M", "BLOCK_N", "num_stages"))
    gathered = 4 * rows * keys * plan.gathers_per_score
    return _row_bytes(plan) * (rows + 2 * keys * stages) + gathered * (stages - 1)


def _nearest(space: Space, wanted: Point) -> Point:
    """Complete `wanted`, replacing values that the space does not offer by its defaults."""
    choices = {d.name: d.choices for d in space.dimensions}
    return space.complete({n: v for n, v in wanted.items() if v in choices.get(n, ())})
