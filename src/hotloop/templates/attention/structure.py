"""How the attention kernel walks its key tiles and moves its data: loops, arguments, loads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.core.space import Point
from hotloop.templates.attention.bounds import has_left_part
from hotloop.templates.attention.expressions import Expressions, MapExpressions
from hotloop.templates.attention.lowering import Tile
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.source import assigned, identifiers


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `attend`: which tiles, with or without a mask."""

    note: str
    args: list[str]
    masked: bool


def loop_values(
    plan: AttentionPlan,
    tile: Tile,
    point: Point,
    main: Expressions,
    tile_map: MapExpressions | None,
) -> dict[str, Any]:
    """Return the template's values that concern loops, their bounds and their arguments."""
    tiles = str(point["tiles"])
    inner = [*main.score_lines, *main.mask_lines, main.keep]
    used = set(identifiers(inner)) | ({"kv_head"} if point.get("loads") == "tma" else set())
    pointers = [f"{name}_ptr" for name in main.buffers]
    outer = ["kv_head", "batch", "head", "q_first", "q_idx", *assigned(main.outer_lines), *pointers]
    shared = [name for name in outer if name in used]
    is_apart = point.get("full_tiles", "apart") == "apart"
    has_gap = tiles == "ranges" or (tiles == "closed" and has_left_part(plan.region))
    if plan.mask is None or not is_apart:
        has_gap = False
    map_pointers = _map_pointers(tiles, is_sorted=point.get("row_order") == "sorted")
    if is_apart:
        calls = _calls(plan, tile, tiles, shared, has_gap=has_gap)
    else:
        calls = [Call("All tiles, under the mask.", ["first", "last", *shared], masked=True)]
    return {
        "has_gap": has_gap,
        "needs_kv_idx": "kv_idx" in used,
        "tiles_note": "those listed" if tiles == "lists" else "first to last - 1",
        "loop_args": ["first", "last", *_walk_names(tiles, has_gap=has_gap), *shared],
        "bound_lines": _needed(_bound_lines(tiles, main, tile), calls),
        "calls": calls,
        "pointers": [f"{name}_ptr" for name in map_pointers] + pointers,
        "arguments": [f"self.{n}" for n in (*map_pointers, *main.buffers)],
        "groups": _map_groups(plan),
        "map_tensors": [f"self.{n}" for n in map_pointers if n != "row_order"],
        "map_buffers": [f"self.{n}" for n in (tile_map.buffers if tile_map else ())],
        "map_results": ["ranges_ptr"] if tiles == "ranges" else ["counts_ptr", "lists_ptr"],
        "map_pointers": [f"{n}_ptr" for n in (tile_map.buffers if tile_map else ())],
    }


def _map_pointers(tiles: str, *, is_sorted: bool) -> list[str]:
    own = {"closed": [], "ranges": ["tile_ranges"], "lists": ["tile_counts", "tile_lists"]}[tiles]
    return [*own, *(["row_order"] * is_sorted)]


def _walk_names(tiles: str, *, has_gap: bool) -> list[str]:
    if tiles == "lists":
        return ["tile_list"]
    return ["gap_at", "gap"] if has_gap else []


@dataclass(frozen=True, slots=True)
class MapGroups:
    """Which heads share a map of the tiles: those between which the mask does not differ."""

    count: str
    """How many maps there are, for the host."""
    of_program: str
    """Which map a program of the main kernel reads."""
    index_lines: tuple[str, ...]
    """Batch and head from `group`, for the kernel that makes the maps."""


def _map_groups(plan: AttentionPlan) -> MapGroups:
    by_batch, by_head = (axis in plan.mask_axes for axis in ("batch", "head"))
    if by_batch and by_head:
        lines = ("batch = group // H", "head = group % H")
        return MapGroups("(B.value * H.value)", "batch_head", lines)
    if by_batch:
        return MapGroups("B.value", "batch", ("batch = group",))
    if by_head:
        return MapGroups("H.value", "head", ("head = group",))
    return MapGroups("1", "0", ())


def _bound_lines(tiles: str, main: Expressions, tile: Tile) -> list[str]:
    if tiles == "ranges":
        names = ("first", "full_first", "full_last", "last")
        return [f"{n} = tl.load(tile_ranges_ptr + map_row * 4 + {i})" for i, n in enumerate(names)]
    if tiles == "lists":
        return [
            "n_masked = tl.load(tile_counts_ptr + map_row * 2)",
            "n_full = tl.load(tile_counts_ptr + map_row * 2 + 1)",
            "kv_tiles = tl.cdiv(KV_LEN, BLOCK_N)",
            "tile_list = tile_lists_ptr + map_row.to(tl.int64) * (2 * kv_tiles)",
        ]
    lines = list(main.bound_lines)
    if "q_last" in identifiers(lines):
        last_row = "q_first + BLOCK_M - 1"
        if tile.has_ragged_rows:
            last_row = f"tl.minimum({last_row}, S - 1)"
        lines.insert(0, f"q_last = {last_row}")
    return lines


def _needed(lines: list[str], calls: Sequence[Call]) -> list[str]:
    """Leave out statements whose name neither a call nor a later statement reads."""
    read = set(identifiers(arg for call in calls for arg in call.args))
    kept: list[str] = []
    for line in reversed(lines):
        name, value = line.split(" = ", 1)
        if name in read:
            kept.insert(0, line)
            read.update(identifiers([value]))
    return kept


def _calls(
    plan: AttentionPlan, tile: Tile, tiles: str, shared: list[str], *, has_gap: bool
) -> list[Call]:
    full_note, masked_note = "Tiles that every row sees whole.", "Tiles that some rows see in part."
    if tiles == "lists":
        return [
            Call(full_note, ["0", "n_full", "tile_list + kv_tiles", *shared], masked=False),
            Call(masked_note, ["0", "n_masked", "tile_list", *shared], masked=True),
        ]
    no_gap = ["0", "0"] if has_gap else []
    calls = []
    if plan.region.every is not None or tiles == "ranges":
        calls.append(Call(full_note, ["full_first", "full_last", *no_gap, *shared], masked=False))
    if plan.mask is None and not tile.has_ragged_keys:
        return calls
    if has_gap:
        rest = ["first", "last - (full_last - full_first)", "full_first", "full_last - full_first"]
    else:
        rest = ["full_last" if calls else "first", "last"]
    calls.append(Call(masked_note, [*rest, *shared], masked=True))
    return calls
