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

MIN_DOT_DEPTH = 16
"""`tl.dot` needs at least this much of the inner dimension."""


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """How tiles of q, k and v are read and the output is written."""

    is_tma: bool
    block_d: int
    load_q: tuple[str, ...]
    load_k: tuple[str, ...]
    load_v: tuple[str, ...]
    store_guard: str
    precision: str
    """Further arguments of `tl.dot`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of `attend`: which tiles, with or without a mask."""

    note: str
    args: list[str]
    masked: bool


def memory_access(plan: AttentionPlan, tile: Tile, point: Point) -> MemoryAccess:
    """Return the loads and the store of the kernel at `point`."""
    spec = plan.spec
    block_d = max(1 << (spec.D - 1).bit_length(), MIN_DOT_DEPTH)
    is_padded = block_d != spec.D
    rows = ["(q_idx < S)"] * tile.has_ragged_rows + ["(d_idx < D)"] * is_padded
    is_tma = point.get("loads") == "tma"
    load_q: tuple[str, ...]
    load_k: tuple[str, ...]
    load_v: tuple[str, ...]
    if is_tma:  # the hardware fills what is past the end with zeros
        load_q = ("q = q_in.load([batch_head, q_first, 0]).reshape(BLOCK_M, BLOCK_D)",)
        load_k, load_v = (
            (f"{n} = {n}_in.load([kv_head, start_n, 0]).reshape(BLOCK_N, BLOCK_D)",) for n in "kv"
        )
    else:
        load_q = (
            "q_offset = batch_head.to(tl.int64) * (S * D)",
            f"q = tl.load(q_in + q_offset + q_idx * D + d_idx{_guard(rows)})",
            "k_in += kv_head.to(tl.int64) * (KV_LEN * D)",
            "v_in += kv_head.to(tl.int64) * (KV_LEN * D)",
        )
        load_k, load_v = _pointer_loads(tile, is_padded=is_padded)
    return MemoryAccess(
        is_tma=is_tma,
        block_d=block_d,
        load_q=load_q,
        load_k=load_k,
        load_v=load_v,
        store_guard=_guard(rows, other=False),
        precision=", input_precision=DOT_PRECISION" if "dot_precision" in point else "",
    )


def _guard(conditions: Sequence[str], *, other: bool = True) -> str:
    if not conditions:
        return ""
    joined = " & ".join(conditions)
    return f", mask={joined}" + (", other=0.0" if other else "")


def _pointer_loads(tile: Tile, *, is_padded: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    columns = ["(d_idx < D)"] * is_padded
    loads = []
    for name in "kv":
        plain = f"{name} = tl.load({name}_in + kv_offset{_guard(columns)})"
        lines = [plain]
        if tile.has_ragged_keys:
            guarded = _guard(["(kv_rows < KV_LEN)", *columns])
            lines = [
                "if MASKED:",
                f"    {name} = tl.load({name}_in + kv_offset{guarded})",
                "else:",
                f"    {plain}",
            ]
        loads.append(lines)
    start = [
        "kv_rows = start_n + tl.arange(0, BLOCK_N)[:, None]",
        "d_idx = tl.arange(0, BLOCK_D)[None, :]",
        "kv_offset = kv_rows * D + d_idx",
    ]
    return (*start, *loads[0]), tuple(loads[1])


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
