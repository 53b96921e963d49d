"""Which key tiles a query tile needs, and in which order: the same for producer and consumers.

Tiles under the mask come first, then the full ones, so that the products of the last full tile end
a loop without mask code. A walk with no tile at all takes one of which the mask leaves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.templates.attention.expressions import Expressions
from hotloop.templates.attention.lowering import Tile
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.hopper.gluon_text import as_gluon_lines
from hotloop.templates.source import identifiers

_FIELDS = {
    "all": (),
    "ranges": ("n_masked", "first", "full_first", "full_last"),
    "lists": ("n_masked", "is_empty", "tile_list"),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One loop of a consumer: which tiles of the walk, with or without a mask."""

    note: str
    start: str
    stop: str
    masked: bool


@dataclass(frozen=True, slots=True)
class Walk:
    """The walk over key tiles, as the template writes it."""

    kind: str
    """`all` tiles; `ranges`, by loop bounds; `lists`."""
    lines: tuple[str, ...]
    """Statements of `find_work` that define the fields."""
    calls: tuple[Call, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """What says which tile is the i-th."""
        return _FIELDS[self.kind]

    @property
    def names(self) -> list[str]:
        """What `find_work` returns."""
        return ["batch_head", "q_first", "n_tiles", *self.fields]

    def tile(self, i: str) -> str:
        """Return the expression for the `i`-th tile of the walk."""
        if self.kind == "all":
            return i if i.isidentifier() or i.isdigit() else f"({i})"
        return f"key_tile({', '.join([i, *self.fields])})"


def find_walk(plan: AttentionPlan, tile: Tile, main: Expressions, tiles: str) -> Walk:
    """Return the walk for `tiles`: `closed`, `ranges` or `lists`."""
    if plan.mask is None and not tile.has_ragged_keys:
        call = Call("The other tiles.", "1", "n_tiles", masked=False)
        return Walk("all", (), (call,))
    if tiles == "lists":
        return Walk("lists", tuple(_list_lines()), _calls(has_full=True))
    if tiles == "ranges":
        names = ("first", "full_first", "full_last", "last")
        lines = [f"{n} = gl.load(tile_ranges_ptr + map_row * 4 + {i})" for i, n in enumerate(names)]
        return Walk("ranges", tuple(lines), _calls(has_full=True))
    wanted = {"first", "full_first", "full_last", "last"}
    lines = as_gluon_lines(_closed_lines(main, tile, wanted))
    return Walk("ranges", tuple(lines), _calls(has_full=plan.region.every is not None))


def _calls(*, has_full: bool) -> tuple[Call, ...]:
    masked = Call("Tiles that some rows see in part.", "1", "n_masked", masked=True)
    full = Call("Tiles that every row sees whole.", "gl.maximum(n_masked, 1)", "n_tiles", False)
    return (masked, full) if has_full else (masked,)


def _list_lines() -> list[str]:
    return [
        "n_masked = gl.load(tile_counts_ptr + map_row * 2)",
        "n_full = gl.load(tile_counts_ptr + map_row * 2 + 1)",
        "tile_list = tile_lists_ptr + map_row.to(gl.int64) * (2 * KEY_TILES)",
        "is_empty = n_masked + n_full == 0",
    ]


def _closed_lines(main: Expressions, tile: Tile, wanted: set[str]) -> list[str]:
    """Return the loop bounds and the numbers of the program that they use, and no others."""
    last_row = "q_first + BLOCK_M - 1"
    if tile.has_ragged_rows:
        last_row = f"tl.minimum({last_row}, S - 1)"
    return needed([*main.program_lines, f"q_last = {last_row}", *main.bound_lines], wanted)


def needed(lines: Sequence[str], wanted: set[str]) -> list[str]:
    """Leave out statements whose name neither `wanted` nor a later statement reads."""
    read = set(wanted)
    kept: list[str] = []
    for line in reversed(lines):
        name, value = line.split(" = ", 1)
        if name in read:
            kept.insert(0, line)
            read.update(identifiers([value]))
    return kept
