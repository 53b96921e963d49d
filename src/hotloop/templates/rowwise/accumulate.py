"""The accumulators of row statistics: how each starts, takes a tile in, and is finished.

All texts use the names of the row-wise templates: a tile is (BLOCK_R, BLOCK_C), `inside` its mask,
`start` its first column, row values are (BLOCK_R, 1). A program of one row has tiles (BLOCK_C,) and
scalars instead: the compiler spreads a (1, n) tile badly over its threads. `whole` is the form for
a row that fits in one tile, `start`/`update`/`finish` the one for a loop over tiles, `merge` joins
the parts of a row that several programs went over.
"""

from __future__ import annotations

from dataclasses import dataclass

_NEGATIVE = 'float("-inf")'
_POSITIVE = 'float("inf")'

LOOP_NAMES = frozenset(
    {"best", "delta", "deviation", "is_better", "n_before", "n_part", "n_tile", "new_top", "share"}
    | {"shift", "tile_at", "tile_best", "tile_m2", "tile_mean", "tile_total"}
)
"""What the statements define besides their results."""


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One statistic, or a pair found together. `names` are those of its results."""

    kind: str
    names: tuple[str, ...]
    value: str
    """Text of the element value that it is a statistic of."""
    is_ragged: bool
    """Whether the last tile has columns past the end."""
    is_one_row: bool
    """Whether a program has one row: tiles without a row axis."""

    def _reduced(self, function: str, tile: str) -> str:
        """Return the text of one value a row."""
        if self.is_one_row:
            return f"tl.{function}({tile}, 0)"
        return f"tl.{function}({tile}, 1)[:, None]"

    def _filled(self, value: str, *, tile: bool = False) -> str:
        """Return the text of a tile or a row value that is `value` everywhere."""
        if self.is_one_row:
            return f"tl.full([BLOCK_C], {value}, tl.float32)" if tile else value
        shape = "[BLOCK_R, BLOCK_C]" if tile else "[BLOCK_R, 1]"
        return f"tl.full({shape}, {value}, tl.float32)"

    def _guarded(self, neutral: str) -> str:
        return f"tl.where(inside, {self.value}, {neutral})" if self.is_ragged else self.value

    def whole(self) -> list[str]:
        """Return statements for a row in one tile."""
        names, x = self.names, self.value
        if self.kind == "sum":
            return [f"{names[0]} = {self._reduced('sum', self._guarded('0.0'))}"]
        if self.kind in ("max", "min", "argmax", "argmin"):
            neutral = _NEGATIVE if self.kind.endswith("max") else _POSITIVE
            return [f"{names[0]} = {self._reduced(self.kind, self._guarded(neutral))}"]
        if self.kind == "exp":
            top, total = names
            return [
                f"{top} = {self._reduced('max', self._guarded(_NEGATIVE))}",
                f"{total} = {self._reduced('sum', self._exp(top))}",
            ]
        mean, m2 = names
        deviation = f"{x} - {mean}"
        if self.is_ragged:
            deviation = f"tl.where(inside, {deviation}, 0.0)"
        return [
            f"{mean} = {self._reduced('sum', self._guarded('0.0'))} / COLUMNS",
            f"deviation = {deviation}",
            f"{m2} = {self._reduced('sum', 'deviation * deviation')}",
        ]

    def _exp(self, shift: str) -> str:
        weight = f"tl.exp({self.value} - {shift})"
        return f"tl.where(inside, {weight}, 0.0)" if self.is_ragged else weight

    def start(self) -> list[str]:
        """Return statements before the loop."""
        neutral = {"sum": "0.0", "max": _NEGATIVE, "min": _POSITIVE}
        if self.kind in neutral:  # one accumulator an element: no reduction inside the loop
            fill = neutral[self.kind]
            return [f"{self.names[0]} = {self._filled(fill, tile=True)}"]
        if self.kind in ("argmax", "argmin"):
            worst = _NEGATIVE if self.kind == "argmax" else _POSITIVE
            position = "0" if self.is_one_row else "tl.zeros([BLOCK_R, 1], tl.int32)"
            return [f"best = {self._filled(worst)}", f"{self.names[0]} = {position}"]
        first, second = self.names
        fill = _NEGATIVE if self.kind == "exp" else "0.0"
        return [f"{first} = {self._filled(fill)}", f"{second} = {self._filled('0.0')}"]

    def update(self) -> list[str]:
        """Return statements inside the loop."""
        name = self.names[0]
        if self.kind == "sum":
            return [f"{name} += {self._guarded('0.0')}"]
        if self.kind in ("max", "min"):
            function = {"max": "maximum", "min": "minimum"}[self.kind]
            neutral = _NEGATIVE if self.kind == "max" else _POSITIVE
            return [f"{name} = tl.{function}({name}, {self._guarded(neutral)})"]
        if self.kind in ("argmax", "argmin"):
            return self._update_position(name)
        return self._update_exp() if self.kind == "exp" else self._update_moments()

    def _update_position(self, name: str) -> list[str]:
        is_max = self.kind == "argmax"
        function, neutral = ("max", _NEGATIVE) if is_max else ("min", _POSITIVE)
        axis, spread = ("0", "") if self.is_one_row else ("1", "[:, None]")
        guarded = self._guarded(neutral)
        return [
            f"tile_best, tile_at = tl.{function}({guarded}, {axis}, return_indices=True)",
            f"is_better = tile_best{spread} {'>' if is_max else '<'} best",
            f"{name} = tl.where(is_better, start + tile_at{spread}, {name})",
            f"best = tl.where(is_better, tile_best{spread}, best)",
        ]

    def _update_exp(self) -> list[str]:
        top, total = self.names
        return [
            f"new_top = tl.maximum({top}, {self._reduced('max', self._guarded(_NEGATIVE))})",
            f"shift = tl.where(new_top == {_NEGATIVE}, 0.0, new_top)",
            f"tile_total = {self._reduced('sum', self._exp('shift'))}",
            f"{total} = {total} * tl.exp({top} - shift) + tile_total",
            f"{top} = new_top",
        ]

    def _update_moments(self) -> list[str]:
        """Join two sets of values (Chan, Golub, LeVeque 1983, equations 2.1)."""
        mean, m2 = self.names
        deviation = f"{self.value} - tile_mean"
        if self.is_ragged:
            deviation = f"tl.where(inside, {deviation}, 0.0)"
        return [
            "n_tile = 1.0 * tl.minimum(BLOCK_C, stop - start)",
            "n_before = 1.0 * (start - first)",
            f"tile_mean = {self._reduced('sum', self._guarded('0.0'))} / n_tile",
            f"deviation = {deviation}",
            f"tile_m2 = {self._reduced('sum', 'deviation * deviation')}",
            f"delta = tile_mean - {mean}",
            "share = n_tile / (n_before + n_tile)",
            f"{m2} += tile_m2 + delta * delta * n_before * share",
            f"{mean} += delta * share",
        ]

    def finish(self) -> list[str]:
        """Return statements after the loop."""
        if self.kind in ("sum", "max", "min"):
            return [f"{self.names[0]} = {self._reduced(self.kind, self.names[0])}"]
        return []

    def merge(self, parts: tuple[str, ...]) -> list[str]:
        """Return statements that join the parts, tensors of shape (BLOCK_R, SPLITS)."""
        name = self.names[0]
        if self.kind in ("sum", "max", "min"):
            return [f"{name} = {self._reduced(self.kind, parts[0])}"]
        first, second = self.names
        if self.kind == "exp":
            weights = f"{parts[1]} * tl.exp({parts[0]} - {first})"
            return [
                f"{first} = {self._reduced('max', parts[0])}",
                f"{second} = {self._reduced('sum', weights)}",
            ]
        return [
            "n_part = tl.minimum(tl.maximum(COLUMNS - split_idx * CHUNK, 0), CHUNK)",
            "n_part = n_part.to(tl.float32)",
            f"{first} = {self._reduced('sum', f'{parts[0]} * n_part')} / COLUMNS",
            f"delta = {parts[0]} - {first}",
            f"{second} = {self._reduced('sum', f'{parts[1]} + delta * delta * n_part')}",
        ]
