"""An analysed attention problem and one schedule point to a Gluon file for Hopper.

Analysis, lowering, loop bounds and the map of tiles are those of the portable attention family;
the structure of the kernel is in `kernel.py.jinja`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.language import GLUON
from hotloop.core.space import Point
from hotloop.templates.activation import device_functions
from hotloop.templates.attention.expressions import (
    Expressions,
    MapExpressions,
    lower_main,
    lower_map,
)
from hotloop.templates.attention.folding import folded
from hotloop.templates.attention.linear_bias import STRIDE, LinearForm, may_exceed
from hotloop.templates.attention.lowering import ScoreForm, Tile
from hotloop.templates.attention.notes import notes
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.structure import loop_values
from hotloop.templates.hopper.gluon_text import (
    as_gluon,
    as_gluon_lines,
    for_map,
    gluon_functions,
    map_functions,
)
from hotloop.templates.hopper.schedule import HopperSchedule, schedule_of
from hotloop.templates.hopper.walk import Walk, find_walk, needed
from hotloop.templates.source import assigned, identifiers, render_candidate

KERNEL = "hopper/kernel.py.jinja"

TEMPLATES = (
    KERNEL,
    *(f"hopper/{part}.py.jinja" for part in ("work", "producer", "weights", "linear", "consumer")),
    "attention/tile_map.py.jinja",
)
"""All that a file is made of."""

TITLE = "Attention forward for Hopper: one warp copies, the others compute."


def render_hopper(plan: AttentionPlan, point: Point) -> Candidate:
    """Return the kernel of `plan` at the complete schedule `point`."""
    spec = plan.spec
    schedule = schedule_of(plan, point)
    tile = Tile(
        has_ragged_rows=spec.S % schedule.block_m != 0,
        has_ragged_keys=spec.Skv % schedule.block_n != 0,
    )
    tiles = str(point.get("tiles", "closed"))
    has_map = tiles != "closed"
    main = lower_main(
        plan, tile, with_bounds=not has_map, templates=TEMPLATES, takes_slope=may_exceed(plan)
    )
    tile_map = for_map(lower_map(plan, tile, templates=TEMPLATES)) if has_map else None
    walk = find_walk(plan, tile, main, tiles, schedule)
    tanh = str(point.get("tanh", "exact"))
    used = {*main.buffers, *(tile_map.buffers if tile_map else ())}
    map_point = {**point, "tiles": tiles, "row_order": "sorted" if has_map else "rows"}
    values: dict[str, Any] = {
        **loop_values(plan, tile, map_point, main, tile_map),
        "title": TITLE,
        "notes": notes(plan, map_point, None, is_linear=isinstance(main.form, LinearForm)),
        "spec": spec,
        "schedule": schedule,
        "map": tile_map,
        "tiles": tiles,
        "boxes": False,
        "buffers": [b for b in spec.buffers if b.name in used],
        **_order(plan, has_map=has_map),
        **_walk_values(walk, schedule),
        **_score_values(plan, main, walk),
        **_slope_values(main.form, schedule),
        **_function_values(main, tile_map, tanh),
    }
    values |= _scope_values(values, main, walk)
    return replace(render_candidate(KERNEL, values), language=GLUON.name)


def _order(plan: AttentionPlan, *, has_map: bool) -> dict[str, str]:
    if has_map:
        return {"order": "sorted"}
    return {"order": "forward" if plan.mask is None else "reversed"}


def _walk_values(walk: Walk, schedule: HopperSchedule) -> dict[str, Any]:
    barriers = ["q_full", "q_empty", "k_full", "k_empty", "v_full", "v_empty"]
    return {
        "walk": walk.kind,
        "masked": walk.masked,
        "walk_names": walk.names,
        "walk_fields": list(walk.fields),
        "walk_args": ["n_tiles", *walk.fields],
        "key_tile_call": walk.tile,
        "first_masked": str(walk.kind != "all"),
        "barriers": [*barriers, *(["may_issue"] * schedule.is_pingpong)],
        "turn_args": ["first_issue"] * schedule.is_pingpong,
    }


def _score_values(plan: AttentionPlan, main: Expressions, walk: Walk) -> dict[str, Any]:
    online = plan.is_softmax and not plan.can_skip_running_max
    ahead = _read_ahead(main)
    score = [line for line in main.score_lines if line not in ahead]
    mask = [line for line in main.mask_lines if line not in ahead]
    inner = [*score, *mask, main.keep]
    read_names = [name for name in assigned(ahead) if name in identifiers(inner)]
    needs_kv_idx = "kv_idx" in identifiers(inner)
    return {
        "form": main.form,
        "x": main.form.x,
        "exponent": "x * X_SCALE" if main.form.scale else "x",
        "is_softmax": plan.is_softmax,
        "online": online,
        "may_be_infinite": plan.may_be_infinite,
        "statistics": [*(["row_sum"] * plan.is_softmax), *(["row_max"] * online)],
        "modifies": bool(main.score_lines) or walk.kind != "all",
        "needs_kv_idx": needs_kv_idx,
        "needs_place": needs_kv_idx or bool(ahead),
        "read_lines": as_gluon_lines(ahead),
        "read_names": read_names,
        "tile_args": ["qk", *(["start_n"] * needs_kv_idx), *read_names],
        "score_lines": folded(as_gluon_lines(score), 4),
        "mask_lines": folded(as_gluon_lines(mask), 8),
        "keep": as_gluon(main.keep),
    }


def _slope_values(form: ScoreForm, schedule: HopperSchedule) -> dict[str, Any]:
    """Return what the template makes of a bias that is linear in the key."""
    if not isinstance(form, LinearForm):
        return {"linear": None, "bias_args": ""}
    slope = "SLOPE" if form.is_number else form.slope
    return {
        "linear": form,
        "group": form.group(schedule.block_n),
        "stride": STRIDE,
        "needs_place": True,
        "slope": slope,
        "bias_args": f"base, {slope}, ",
    }


def _read_ahead(main: Expressions) -> list[str]:
    """Return the statements that read captured tensors by key, and what those need.

    They do not need the scores, so they are carried out while the tensor cores make them.
    """
    reads = [line for line in main.column_lines if "tl.load(" in line]
    return needed(main.column_lines, set(assigned(reads)))


def _function_values(
    main: Expressions, tile_map: MapExpressions | None, tanh: str
) -> dict[str, Any]:
    """Return device functions: Gluon's for the kernel, Triton's own for the map of tiles."""
    lines = [*main.outer_lines, *main.score_lines, *main.mask_lines, main.keep]
    functions = gluon_functions(device_functions(main.calls, tanh=tanh), as_gluon_lines(lines))
    plain = map_functions(device_functions(tile_map.calls, tanh=tanh)) if tile_map else []
    return {
        "functions": functions,
        "map_functions": plain,
        "uses_libdevice": any("libdevice." in text for text in (*functions, *lines, *plain)),
    }


def _scope_values(values: dict[str, Any], main: Expressions, walk: Walk) -> dict[str, Any]:
    """Return which outer names the parts of the kernel use, and so must be handed."""
    pointers: list[str] = values["pointers"]
    bias = [f"q_first * {values['slope']}"] if values["linear"] else []
    inner = set(identifiers([*main.score_lines, *main.mask_lines, main.keep, *bias]))
    own = ["batch", "head", "q_first", "q_idx", *assigned(main.outer_lines), *pointers]
    shared = [name for name in own if name in inner]
    read_args = [name for name in own if name in identifiers(values["read_lines"])]
    in_tile = [name for name in shared if name in identifiers(_tile_lines(values))]
    outer = needed(main.outer_lines, set(shared))
    in_rows = {*identifiers(outer), *shared}
    in_work = {*identifiers(walk.lines), *identifiers([values["groups"].of_program])}
    work_pointers = [p for p in pointers if p in in_work or p.startswith(("tile_", "row_order"))]
    return {
        "shared_names": shared,
        "read_args": read_args,
        "tile_names": in_tile,
        "outer_lines": as_gluon_lines(outer),
        "work_lines": walk.lines,
        "work_pointers": work_pointers,
        "work_names": in_work,
        "row_names": in_rows,
    }


def _tile_lines(values: dict[str, Any]) -> list[str]:
    return [*values["score_lines"], *values["mask_lines"], values["keep"]]
