"""The schedule space of the matrix-product template."""

from __future__ import annotations

from hotloop.core.space import Dimension, Point, Space
from hotloop.templates.dot_precision import DOT_PRECISION, dot_precision, on_tensor_cores
from hotloop.templates.matmul.problem import MatmulProblem, Operand

ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
TMA_ALIGNMENT_BYTES = 16
"""Of every stride but the last (CUDA driver API, cuTensorMapEncodeTiled)."""

MULTIPROCESSORS = 132
"""Of an H100 or H200: with fewer tiles than this, splitting K fills the machine."""


def matmul_space(problem: MatmulProblem) -> Space:
    """Return the dimensions that make sense for `problem`, and its starting points."""
    is_wide = problem.dtype == "float32"
    tiles_n: tuple[int, ...] = (128, 64, 32) if is_wide else (128, 256, 64)
    if is_wide and problem.allows_tf32:  # one product in place of three leaves registers for it
        tiles_n = (128, 256, 64, 32)
    dimensions = [
        Dimension(name="BLOCK_M", choices=_capped((128, 64, 32), problem.M), ordered=True),
        Dimension(name="BLOCK_N", choices=_capped(tiles_n, problem.N), ordered=True),
        Dimension(name="BLOCK_K", choices=(32, 64, 16) if is_wide else (64, 32, 128), ordered=True),
        Dimension(name="GROUP_M", choices=(8, 4, 16, 1), ordered=True),
        Dimension(name="SPLIT_K", choices=_splits(problem), ordered=True),
        Dimension(name="num_warps", choices=(8, 4), ordered=True),
        Dimension(name="num_stages", choices=(3, 4, 2), ordered=True),
    ]
    loads = ("tma", "pointer") if _fits_tma(problem) else ("pointer",)
    if is_wide:  # products on the float32 units take operands from registers: no use for TMA
        precision = dot_precision(allows_tf32=problem.allows_tf32)
        when = {DOT_PRECISION: on_tensor_cores(precision)}
        dimensions += [precision, Dimension(name="loads", choices=loads, when=when)]
    else:
        dimensions.append(Dimension(name="loads", choices=loads))
    space = Space(dimensions=tuple(dimensions))
    return Space(dimensions=space.dimensions, starts=_starts(problem, space))


def _capped(choices: tuple[int, ...], length: int) -> tuple[int, ...]:
    limit = max(1 << (length - 1).bit_length(), 16)
    return tuple(c for c in choices if c <= limit) or (limit,)


def _splits(problem: MatmulProblem) -> tuple[int, ...]:
    """Return into how many parts K may be cut: only where output tiles are few and K is long."""
    tiles = -(-problem.M // 128) * -(-problem.N // 128) * problem.batch
    if problem.batch > 1 or tiles >= MULTIPROCESSORS or problem.K < 4096:
        return (1,)
    fitting = [s for s in (4, 8, 16, 32, 64) if problem.K // s >= 512]
    best = min(fitting, key=lambda s: abs(tiles * s - 2 * MULTIPROCESSORS))
    return (best, *(s for s in (1, *fitting) if s != best))


def _fits_tma(problem: MatmulProblem) -> bool:
    size = ELEMENT_BYTES[problem.dtype]
    sides = [(problem.a, problem.M, problem.K), (problem.b, problem.K, problem.N)]
    return all(_has_tma_layout(o, rows, columns, problem.batch, size) for o, rows, columns in sides)


def _has_tma_layout(operand: Operand, rows: int, columns: int, batch: int, size: int) -> bool:
    strides = sorted((operand.row_stride, operand.column_stride))
    outer = [strides[1], *([operand.batch_stride] if batch > 1 else [])]
    is_aligned = all(s > 0 and s * size % TMA_ALIGNMENT_BYTES == 0 for s in outer)
    return strides[0] == 1 and is_aligned and min(rows, columns) > 1


def _starts(problem: MatmulProblem, space: Space) -> tuple[Point, ...]:
    if problem.dtype == "float32":
        tiles = [(128, 128, 32, 8, 3), (128, 64, 32, 4, 3), (64, 64, 32, 4, 4)]
        tiles[1:1] = [(128, 256, 32, 8, 3)] * problem.allows_tf32
    else:
        tiles = [(128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 64, 4, 3)]
        tiles.append((64, 64, 64, 4, 4))
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")
    choices = {d.name: d.choices for d in space.dimensions}
    points = []
    for tile in tiles:
        wanted = {n: v for n, v in zip(names, tile, strict=True) if v in choices[n]}
        point = space.complete(wanted)
        if point not in points:
            points.append(point)
    if problem.dtype == "float32":
        if problem.allows_tf32:  # a start whose precision no check can object to
            points.append({**points[0], DOT_PRECISION: "tf32x3"})
        exact: Point = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 16, DOT_PRECISION: "ieee"}
        points.append(space.complete({n: v for n, v in exact.items() if v in choices[n]}))
    return tuple(points)
