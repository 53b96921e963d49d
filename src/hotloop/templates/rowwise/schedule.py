"""The schedule space of the row-wise templates.

`whole` holds a row in one tile and reads it once. `loop` goes over a row in tiles, once a pass.
`split` gives each row to several programs and joins their parts in a second kernel: for few long
rows. A problem without a reduction is `flat`.
"""

from __future__ import annotations

from hotloop.core.space import Dimension, Point, Space
from hotloop.templates.rowwise.decompose import decompose, statistic_stages
from hotloop.templates.rowwise.problem import RowProblem

MAX_WHOLE_COLUMNS = 32768
"""Longest row in one tile: 32 warps hold it in 32 registers a thread."""

FEW_ROWS = 1024
"""With fewer rows than this, programs of one row each leave some of 132 multiprocessors idle."""

WANTED_PROGRAMS = 2048
"""About 16 for each multiprocessor: enough to keep loads in flight, few enough to join."""


def rowwise_space(problem: RowProblem) -> Space:
    """Return the dimensions that make sense for `problem`, and its starting points."""
    if not problem.dims:
        return _flat_space()
    structures = _structures(problem)
    is_strided = problem.inner > 1
    rows = (128, 64, 256, 512) if is_strided else _row_choices(problem)
    columns = (8, 4, 16, 32) if is_strided else (4096, 2048, 1024, 8192)
    tiled = {"structure": ("loop", "split")}
    dimensions = [
        Dimension(name="structure", choices=structures),
        Dimension(name="BLOCK_R", choices=rows, ordered=True),
        Dimension(name="BLOCK_C", choices=columns, ordered=True, when=tiled),
        Dimension(name="num_warps", choices=(8, 4, 16, 2), ordered=True),
    ]
    if "split" in structures:
        when = {"structure": ("split",)}
        choices = _split_choices(problem)
        dimensions.append(Dimension(name="SPLITS", choices=choices, ordered=True, when=when))
    space = Space(dimensions=tuple(dimensions))
    return Space(dimensions=space.dimensions, starts=_starts(space, structures))


def _flat_space() -> Space:
    dimensions = (
        Dimension(name="structure", choices=("flat",)),
        Dimension(name="BLOCK", choices=(2048, 1024, 4096, 8192, 512), ordered=True),
        Dimension(name="num_warps", choices=(8, 4, 16), ordered=True),
    )
    sizes = ((2048, 8), (1024, 4), (4096, 8))
    points: list[Point] = [{"BLOCK": block, "num_warps": warps} for block, warps in sizes]
    space = Space(dimensions=dimensions)
    return Space(dimensions=dimensions, starts=tuple(space.complete(p) for p in points))


def _structures(problem: RowProblem) -> tuple[str, ...]:
    graph = decompose(problem)
    fits = problem.columns <= (MAX_WHOLE_COLUMNS if problem.inner == 1 else 64)
    has_position = any(n.op in ("stat_argmax", "stat_argmin") for n in graph.nodes)
    can_split = len(statistic_stages(graph)) == 1 and not has_position
    found = ["whole"] if fits else []
    if can_split and problem.rows < FEW_ROWS and problem.columns > 4096:
        found.append("split")
    return (*found, "loop")


def _split_choices(problem: RowProblem) -> tuple[int, ...]:
    """Return how many programs may share a row: about `WANTED_PROGRAMS` in all come first."""
    most = max(problem.columns // 4096, 2)
    ideal = min(max(WANTED_PROGRAMS // problem.rows, 2), most)
    best = 1 << (ideal.bit_length() - 1)
    return tuple(s for s in (best, best // 2, best * 2, best // 4) if s > 1)


def _row_choices(problem: RowProblem) -> tuple[int, ...]:
    """Return how many rows a program may take: several only where rows are short."""
    if problem.columns > 4096:
        return (1,)
    return (1, 2, 4) if problem.columns > 512 else (4, 1, 8, 16)


def _starts(space: Space, structures: tuple[str, ...]) -> tuple[Point, ...]:
    points: list[Point] = []
    for structure in structures:
        for warps in (8, 16) if structure != "split" else (8, 4):
            points.append(space.complete({"structure": structure, "num_warps": warps}))
    return tuple(points)
