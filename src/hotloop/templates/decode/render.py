"""An analysed attention problem with few queries and one schedule point to a kernel file.

Analysis and lowering are those of the portable family. Its expressions name the head as a number of
the program; here it differs between rows, so the template makes `head` a column of (ROWS, 1) and
everything computed from it broadcasts.
"""

from __future__ import annotations

from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.space import Point
from hotloop.templates.activation import device_functions
from hotloop.templates.attention.bounds import scalar_nodes
from hotloop.templates.attention.expressions import Expressions, lower_main
from hotloop.templates.attention.lowering import Tile
from hotloop.templates.attention.notes import notes
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.decode.schedule import rows_of
from hotloop.templates.dot_precision import DOT_PRECISION, TF32, WHY_TF32, rounding
from hotloop.templates.source import identifiers, render_candidate

KERNEL = "decode/kernel.py.jinja"
TITLE = (
    "Attention of a few queries: the keys are split into shares, a second kernel joins the parts."
)
MIN_DOT_ROWS = 16
"""`tl.dot` needs at least so many rows and so much of the inner dimension."""
DISTANCE = ("kv_idx - q_first", "kv_idx - (KV_LEN - S)")
"""Biases count positions from the tile's first row, which softmax cancels. Queries of a decode step
stand at the end of the keys, so that distances from there are small and float32 holds them well."""


def render_decode(plan: AttentionPlan, point: Point) -> Candidate:
    """Return the kernel of `plan` at the complete schedule `point`."""
    spec = plan.spec
    rows = max(1 << (rows_of(spec) - 1).bit_length(), MIN_DOT_ROWS)
    tile = Tile(
        has_ragged_rows=rows != rows_of(spec),
        has_ragged_keys=spec.Skv % int(point["BLOCK_N"]) != 0,
    )
    has_bounds, is_paged = _has_bounds(plan), spec.page_size is not None
    is_within_page = is_paged and int(point["BLOCK_N"]) <= (spec.page_size or 0)
    main = lower_main(plan, tile, with_bounds=has_bounds, templates=(KERNEL,))
    precision = str(point.get(DOT_PRECISION, "ieee"))
    calls = main.calls | rounding(precision)
    functions = device_functions(calls, tanh=str(point.get("tanh", "exact")))
    block_d = max(1 << (spec.D - 1).bit_length(), MIN_DOT_ROWS)
    inner = [*main.score_lines, *main.mask_lines, main.keep]
    cache_note = [f"Cache      pages of {spec.page_size} keys, found by page_table"]
    values: dict[str, Any] = {
        "title": TITLE,
        "notes": notes(plan, {**point, "tiles": "closed"}, None) + cache_note * is_paged,
        "spec": spec,
        "point": point,
        "group": spec.H // spec.Hkv,
        "rows": rows,
        "block_d": block_d,
        "main": main,
        "score_lines": [line.replace(*DISTANCE) for line in main.score_lines],
        "functions": functions,
        "uses_libdevice": _mentions_libdevice(functions, main),
        "needs_kv_idx": "kv_idx" in identifiers(inner),
        "bound_lines": _bounds(main) if has_bounds else [],
        "is_softmax": plan.is_softmax,
        "is_masked": plan.mask is not None or tile.has_ragged_keys,
        "may_be_infinite": plan.may_be_infinite,
        "x": main.form.x,
        "exponent": f"{main.form.x} * X_SCALE" if main.form.scale else main.form.x,
        "precision": f', input_precision="{precision}"' if spec.dtype == "float32" else "",
        "rounds": precision == TF32,
        "why_tf32": WHY_TF32,
        "row_guard": _guard(["row < GROUP * S"] * tile.has_ragged_rows, block_d != spec.D),
        "key_guard": _guard(["kv_rows < KV_LEN"] * tile.has_ragged_keys, block_d != spec.D),
        "statistic_guard": _guard(["row < GROUP * S"] * tile.has_ragged_rows, False),
        "is_within_page": is_within_page,
        "step_keys": "" if is_within_page else " + tl.arange(0, BLOCK_N)",
        "table_pointer": ["page_table_ptr"] * is_paged,
        "table_argument": ["self.page_table"] * is_paged,
        "pointers": [f"{name}_ptr" for name in main.buffers],
        "arguments": [f"self.{name}" for name in main.buffers],
        "buffers": [b for b in spec.buffers if b.name in main.buffers],
    }
    return render_candidate(KERNEL, values)


def _has_bounds(plan: AttentionPlan) -> bool:
    """Whether loop bounds are the same for all heads of a tile."""
    if plan.mask is None:
        return False
    return not any("head" in plan.mask.axes[name] for name in scalar_nodes(plan.region))


def _bounds(main: Expressions) -> list[str]:
    """Return the statements for the first and the last tile, over constants for the rows."""
    lines = [line for line in main.bound_lines if not line.startswith("full_")]
    rows = {"q_first": "q_first = 0", "q_last": "q_last = S - 1"}
    return [rows[name] for name in rows if name in identifiers(lines)] + lines


def _guard(conditions: list[str], is_padded: bool) -> str:
    """Return the condition under which an element of a tile of rows is in memory; may be empty."""
    parts = [f"({c})" for c in conditions + ["d_idx < D"] * is_padded]
    return " & ".join(parts)


def _mentions_libdevice(functions: tuple[str, ...], main: Expressions) -> bool:
    texts = [*functions, *main.outer_lines, *main.score_lines, *main.mask_lines, main.keep]
    return any("libdevice." in text for text in texts)
