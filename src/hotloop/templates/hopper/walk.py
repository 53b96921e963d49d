"""Which key tiles a query tile needs, and in which order: the same for producer and consumers.

Tiles under the mask come first, then the full ones. One loop takes all but the first tile: with a
loop for each kind, results would pass from one to the other, and what passes in registers is copied
and permuted in every step. A walk with no tile at all takes one of which the mask leaves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.templates.attention.bounds import scalar_nodes
from hotloop.templates.attention.expressions import Expressions
from hotloop.templates.attention.lowering import Tile
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.span import Bound, evaluate
from hotloop.templates.hopper.gluon_text import as_gluon_lines
from hotloop.templates.hopper.schedule import HopperSchedule
from hotloop.templates.source import identifiers

_FIELDS = {
    "all": (),
    "ranges": ("n_masked", "first", "full_first", "full_last"),
    "lists": ("n_masked", "is_empty", "tile_list"),
}

_BY_NUMBER = "i < n_masked"


@dataclass(frozen=True, slots=True)
class Walk:
    """The walk over key tiles, as the template writes it."""

    kind: str
    """`all` tiles; `ranges`, by loop bounds; `lists`."""
    lines: tuple[str, ...]
    """Statements of `find_work` that define the fields."""
    masked: str
    """Whether the loop's i-th tile is under the mask: True, False, or an expression."""

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


def find_walk(
    plan: AttentionPlan, tile: Tile, main: Expressions, tiles: str, schedule: HopperSchedule
) -> Walk:
    """Return the walk for `tiles`: `closed`, `ranges` or `lists`."""
    if plan.mask is None and not tile.has_ragged_keys:
        return Walk("all", (), "False")
    if tiles == "lists":
        return Walk("lists", tuple(_list_lines()), _BY_NUMBER)
    if tiles == "ranges":
        names = ("first", "full_first", "full_last", "last")
        lines = [f"{n} = gl.load(tile_ranges_ptr + map_row * 4 + {i})" for i, n in enumerate(names)]
        return Walk("ranges", tuple(lines), _BY_NUMBER)
    wanted = {"first", "full_first", "full_last", "last"}
    lines = as_gluon_lines(_closed_lines(main, tile, wanted))
    if plan.region.every is None:
        return Walk("ranges", tuple(lines), "True")
    most = most_masked(plan, schedule.block_m, schedule.block_n)
    # The first tile is taken before the loop.
    is_first_alone = most is not None and most <= 1
    return Walk("ranges", tuple(lines), "False" if is_first_alone else _BY_NUMBER)


def most_masked(plan: AttentionPlan, block_m: int, block_n: int) -> int | None:
    """Return how many tiles a query tile has under the mask at most, by closed forms.

    None where that is unknown: the bounds need numbers of the program, or no tile is full.
    """
    spec, region = plan.spec, plan.region
    if region.every is None or scalar_nodes(region):
        return None
    some, every = region.some, region.every
    most = 0
    for q_first in range(0, spec.S, block_m):
        rows = (q_first, min(q_first + block_m, spec.S) - 1)
        first = _key(some.low, 0, rows, spec.Skv) // block_n
        last = max(first, -(-_key(some.high, spec.Skv, rows, spec.Skv) // block_n))
        full_first = -(-_key(every.low, 0, rows, spec.Skv) // block_n)
        full_first = min(max(full_first, first), last)
        full_last = _key(every.high, spec.Skv, rows, spec.Skv) // block_n
        full_last = min(max(full_last, full_first), last)
        most = max(most, last - first - (full_last - full_first))
    return most


def _key(bound: Bound | None, default: int, rows: tuple[int, int], keys: int) -> int:
    """Return the key, 0 to `keys`, at which a span of the query tile from row to row ends."""
    if bound is None:
        return default
    return min(max(evaluate(bound, q_first=rows[0], q_last=rows[1], scalars={}), 0), keys)


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
