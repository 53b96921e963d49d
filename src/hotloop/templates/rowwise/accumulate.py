"""The accumulators of row statistics: how each starts, takes a tile in, and is finished.

All texts use the names of the row-wise templates: a tile is (BLOCK_R, BLOCK_C), `inside` its mask,
`start` its first column, row values are (BLOCK_R, 1). `whole` is the form for a row that fits in one
tile, `start`/`update`/`finish` the one for a loop over tiles, `merge` joins the parts of a row that
several programs went over.
"""

from __future__ import annotations

from dataclasses import dataclass

_NEGATIVE = 'float("-inf")'
_POSITIVE = 'float("inf")'


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One statistic, or a pair found together. `names` are those of its results."""

    kind: str
    names: tuple[str, ...]
    value: str
    """Text of the element value that it is a statistic of."""
    is_ragged: bool
    """Whether the last tile has columns past the end."""

    def _guarded(self, neutral: str) -> str:
        return f"tl.where(inside, {self.value}, {neutral})" if self.is_ragged else self.value

    def whole(self) -> list[str]:
        """Return statements for a row in one tile."""
        names, x = self.names, self.value
        if self.kind == "sum":
            return [f"{names[0]} = tl.sum({self._guarded('0.0')}, 1)[:, None]"]
        if self.kind in ("max", "min"):
            neutral = _NEGATIVE if self.kind == "max" else _POSITIVE
            return [f"{names[0]} = tl.{self.kind}({self._guarded(neutral)}, 1)[:, None]"]
        if self.kind in ("argmax", "argmin"):
            neutral = _NEGATIVE if self.kind == "argmax" else _POSITIVE
            return [f"{names[0]} = tl.{self.kind}({self._guarded(neutral)}, 1)[:, None]"]
        if self.kind == "exp":
            top, total = names
            return [
                f"{top} = tl.max({self._guarded(_NEGATIVE)}, 1)[:, None]",
                f"{total} = tl.sum({self._exp(top)}, 1)[:, None]",
            ]
        mean, m2 = names
        deviation = f"{x} - {mean}"
        if self.is_ragged:
            deviation = f"tl.where(inside, {deviation}, 0.0)"
        return [
            f"{mean} = tl.sum({self._guarded('0.0')}, 1)[:, None] / COLUMNS",
            f"deviation = {deviation}",
            f"{m2} = tl.sum(deviation * deviation, 1)[:, None]",
        ]

    def _exp(self, shift: str) -> str:
        weight = f"tl.exp({self.value} - {shift})"
        return f"tl.where(inside, {weight}, 0.0)" if self.is_ragged else weight

    def start(self) -> list[str]:
        """Return statements before the loop."""
        neutral = {"sum": "0.0", "max": _NEGATIVE, "min": _POSITIVE}
        if self.kind in neutral:  # one accumulator an element: no reduction inside the loop
            fill = neutral[self.kind]
            return [f"{self.names[0]} = tl.full([BLOCK_R, BLOCK_C], {fill}, tl.float32)"]
        if self.kind in ("argmax", "argmin"):
            worst = _NEGATIVE if self.kind == "argmax" else _POSITIVE
            return [
                f"best = tl.full([BLOCK_R, 1], {worst}, tl.float32)",
                f"{self.names[0]} = tl.zeros([BLOCK_R, 1], tl.int32)",
            ]
        first, second = self.names
        fill = _NEGATIVE if self.kind == "exp" else "0.0"
        return [
            f"{first} = tl.full([BLOCK_R, 1], {fill}, tl.float32)",
            f"{second} = tl.zeros([BLOCK_R, 1], tl.float32)",
        ]

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
        guarded = self._guarded(neutral)
        return [
            f"tile_best, tile_at = tl.{function}({guarded}, 1, return_indices=True)",
            f"is_better = tile_best[:, None] {'>' if is_max else '<'} best",
            f"{name} = tl.where(is_better, start + tile_at[:, None], {name})",
            "best = tl.where(is_better, tile_best[:, None], best)",
        ]

    def _update_exp(self) -> list[str]:
        top, total = self.names
        return [
            f"new_top = tl.maximum({top}, tl.max({self._guarded(_NEGATIVE)}, 1)[:, None])",
            f"shift = tl.where(new_top == {_NEGATIVE}, 0.0, new_top)",
            f"tile_total = tl.sum({self._exp('shift')}, 1)[:, None]",
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
            f"tile_mean = tl.sum({self._guarded('0.0')}, 1)[:, None] / n_tile",
            f"deviation = {deviation}",
            f"delta = tile_mean - {mean}",
            "share = n_tile / (n_before + n_tile)",
            f"{m2} += tl.sum(deviation * deviation, 1)[:, None] + delta * delta * n_before * share",
            f"{mean} += delta * share",
        ]

    def finish(self) -> list[str]:
        """Return statements after the loop."""
        if self.kind in ("sum", "max", "min"):
            return [f"{self.names[0]} = tl.{self.kind}({self.names[0]}, 1)[:, None]"]
        return []

    def merge(self, parts: tuple[str, ...]) -> list[str]:
        """Return statements that join the parts, tensors of shape (BLOCK_R, SPLITS)."""
        name = self.names[0]
        if self.kind in ("sum", "max", "min"):
            return [f"{name} = tl.{self.kind}({parts[0]}, 1)[:, None]"]
        first, second = self.names
        if self.kind == "exp":
            return [
                f"{first} = tl.max({parts[0]}, 1)[:, None]",
                f"{second} = tl.sum({parts[1]} * tl.exp({parts[0]} - {first}), 1)[:, None]",
            ]
        return [
            "n_part = tl.minimum(tl.maximum(COLUMNS - split_idx * CHUNK, 0), CHUNK)",
            "n_part = n_part.to(tl.float32)",
            f"{first} = tl.sum({parts[0]} * n_part, 1)[:, None] / COLUMNS",
            f"delta = {parts[0]} - {first}",
            f"{second} = tl.sum({parts[1]} + delta * delta * n_part, 1)[:, None]",
        ]
