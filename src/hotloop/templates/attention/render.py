"""An analysed attention problem and one schedule point to a kernel file.

Lowering fills in the expressions; the structure of the kernel is in `kernel.py.jinja`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.space import Point
from hotloop.templates.activation import device_functions
from hotloop.templates.attention.access import memory_access
from hotloop.templates.attention.expressions import (
    Expressions,
    MapExpressions,
    lower_main,
    lower_map,
)
from hotloop.templates.attention.folding import folded
from hotloop.templates.attention.lowering import Tile
from hotloop.templates.attention.notes import TITLE, notes
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.structure import loop_values
from hotloop.templates.attention.token_order import in_listed_tiles, token_order
from hotloop.templates.dot_precision import DOT_PRECISION, TF32, WHY_TF32, rounding
from hotloop.templates.source import render_candidate


def render_attention(plan: AttentionPlan, point: Point) -> Candidate:
    """Return the kernel of `plan` at the complete schedule `point`."""
    spec = plan.spec
    tile = Tile(
        has_ragged_rows=spec.S % int(point["BLOCK_M"]) != 0,
        has_ragged_keys=spec.Skv % int(point["BLOCK_N"]) != 0,
    )
    tiles = str(point["tiles"])
    has_map = tiles != "closed"
    order = token_order(plan, point)
    main = lower_main(in_listed_tiles(plan, order, point), tile, with_bounds=not has_map)
    tile_map = lower_map(plan, tile) if has_map else None
    main = replace(
        main, score_lines=folded(main.score_lines, 8), mask_lines=folded(main.mask_lines, 12)
    )
    if tile_map is not None:
        tile_map = replace(tile_map, loop_lines=folded(tile_map.loop_lines, 8))
    functions = device_functions(
        main.calls
        | (tile_map.calls if tile_map else frozenset())
        | rounding(point.get(DOT_PRECISION)),
        tanh=str(point.get("tanh", "exact")),
    )
    if order is not None:
        functions = (*order.functions(), *functions)
    access = memory_access(plan, tile, point, order)
    used = {*main.buffers, *(tile_map.buffers if tile_map else ())}
    online = plan.is_softmax and point.get("running_max", "online") == "online"
    values: dict[str, Any] = {
        "title": TITLE,
        "notes": notes(plan, point, order),
        "spec": spec,
        "point": {"maxnreg": 0, DOT_PRECISION: None, **point},
        "rounds": point.get(DOT_PRECISION) == TF32,
        "why_tf32": WHY_TF32,
        "tiles": tiles,
        "order": point.get("grid_order", point.get("row_order")),
        "main": main,
        "map": tile_map,
        "access": access,
        "inputs": [
            "q_in" if access.is_q_tma else "q",
            *(["k_in", "v_in"] if access.is_tma else "kv"),
        ],
        "boxes": order is not None,
        "functions": functions,
        "uses_libdevice": _mentions_libdevice(functions, main, tile_map),
        "is_softmax": plan.is_softmax,
        "is_masked": plan.mask is not None or tile.has_ragged_keys,
        "may_be_infinite": plan.may_be_infinite,
        "online": online,
        "state": ["acc", *(["row_sum"] * plan.is_softmax), *(["row_max"] * online)],
        "x": main.form.x,
        "exponent": f"{main.form.x} * X_SCALE" if main.form.scale else main.form.x,
        "scale_note": "x to units of log2: softmax is made of exp2",
        "buffers": [b for b in spec.buffers if b.name in used],
    }
    return render_candidate(
        "attention/kernel.py.jinja", values | loop_values(plan, tile, point, main, tile_map)
    )


def _mentions_libdevice(
    functions: tuple[str, ...], main: Expressions, tile_map: MapExpressions | None
) -> bool:
    texts = [*functions, *main.outer_lines, *main.score_lines, *main.mask_lines, main.keep]
    if tile_map is not None:
        texts += [*tile_map.outer_lines, *tile_map.loop_lines, tile_map.keep]
    return any("libdevice." in text for text in texts)
