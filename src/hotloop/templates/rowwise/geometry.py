"""The tiles of a row-wise kernel at one schedule point: sizes, masks, and the index statements."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.space import Point
from hotloop.templates.rowwise.problem import RowProblem
from hotloop.templates.value import Level

INT32_SAFE = 2**30
"""Tensors of more elements are addressed with 64-bit offsets; a tile may reach past the end."""

INDEX_NAMES = frozenset({"row", "outer", "inner", "col", "in_row", "in_col", "inside"})
"""What the index statements define."""


@dataclass(frozen=True)
class RowGeometry:
    """How programs and tiles cover the rows and columns of a problem."""

    problem: RowProblem
    point: Point

    @property
    def structure(self) -> str:
        """`flat`, `whole`, `loop` or `split`."""
        return str(self.point["structure"])

    @property
    def is_wide(self) -> bool:
        """Whether offsets need 64 bits."""
        return self.problem.columns * self.problem.rows > INT32_SAFE

    @property
    def block_columns(self) -> int:
        """Columns of a tile."""
        if self.structure == "whole":
            return max(1 << (self.problem.columns - 1).bit_length(), 1)
        return int(self.point["BLOCK_C"])

    @property
    def is_one_row(self) -> bool:
        """Whether a program has one row: tiles then have no row axis."""
        return self.structure != "flat" and int(self.point["BLOCK_R"]) == 1

    @property
    def has_ragged_columns(self) -> bool:
        """Whether the last tile of a row has columns past the end."""
        if self.structure == "flat":
            return self.problem.columns % int(self.point["BLOCK"]) != 0
        if self.structure == "split":
            return self.problem.columns % self.chunk != 0 or self.chunk % self.block_columns != 0
        return self.problem.columns % self.block_columns != 0

    @property
    def has_ragged_rows(self) -> bool:
        """Whether the last program has rows past the end."""
        return self.structure != "flat" and self.problem.rows % int(self.point["BLOCK_R"]) != 0

    @property
    def chunk(self) -> int:
        """Columns of one program of the split structure, whole tiles."""
        per_program = -(-self.problem.columns // int(self.point["SPLITS"]))
        return -(-per_program // self.block_columns) * self.block_columns

    def guards(self) -> dict[Level, str]:
        """Return the load and store masks by level."""
        rows = ["in_row"] * self.has_ragged_rows
        columns = ["in_col"] * self.has_ragged_columns
        return {
            Level.PROGRAM: "",
            Level.ROW: " & ".join(rows),
            Level.COLUMN: " & ".join(columns),
            Level.ELEMENT: "inside" if rows or columns else "",
        }

    def row_lines(self, program: str) -> list[str]:
        """Return the statements that find the rows of a program."""
        if self.is_wide:
            program += ".to(tl.int64)"
        lines = [f"row = {program} * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]"]
        if self.is_one_row:
            lines = [f"row = {program}"]
        lines += ["in_row = row < ROWS"] * self.has_ragged_rows
        if self.problem.inner > 1:
            return [*lines, "outer = row // INNER", "inner = row % INNER"]
        return [*lines, "outer = row"]

    def column_lines(self) -> list[str]:
        """Return the statements that find the columns of a tile."""
        start = "" if self.structure == "whole" else "start + "
        stop = "stop" if self.structure == "split" else "COLUMNS"
        lines = [f"col = {start}tl.arange(0, BLOCK_C){'' if self.is_one_row else '[None, :]'}"]
        lines += [f"in_col = col < {stop}"] * self.has_ragged_columns
        flags = ["in_row"] * self.has_ragged_rows + ["in_col"] * self.has_ragged_columns
        return [*lines, *([f"inside = {' & '.join(flags)}"] if flags else [])]
