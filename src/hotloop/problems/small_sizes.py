"""Smaller sizes for machines without a GPU, where kernels are interpreted element by element.

Only constants that `--set` can replace are suggested. What depends on them is not followed: a
dimension that equals a constant is taken to come from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotloop.core.problem import Problem, ProblemInfo, ProblemKind
from hotloop.core.python_source import parse_python
from hotloop.problems.attention import attention_sizes
from hotloop.problems.constants import Constant, fold_constants

MANY_ELEMENTS = 1 << 20
"""Triton's interpreter does a few million elements a second on one core, and one check of a kernel
calls it about ten times."""
SMALL_SIZE = 64

Shape = tuple[int, ...]


def count_elements(info: ProblemInfo) -> int:
    """Return how many elements the inputs and parameters have together."""
    return sum(math.prod(shape) for shape in _shapes(info))


def suggest_small_sizes(problem: Problem, info: ProblemInfo) -> dict[str, int]:
    """Return values for `--set` that make an interpreted check short; empty when none is needed.

    The largest constants shrink first, and no more of them than necessary. Empty too where no
    constant of the file is a dimension.
    """
    shapes, sizes = _shapes(info), _sizes(problem)
    chosen: dict[str, int] = {}
    for size in sorted(set(sizes.values()), reverse=True):
        if sum(map(math.prod, shapes)) <= MANY_ELEMENTS or size <= SMALL_SIZE:
            break
        if any(size in shape for shape in shapes):
            chosen |= {name: SMALL_SIZE for name, value in sizes.items() if value == size}
            shapes = [tuple(SMALL_SIZE if n == size else n for n in shape) for shape in shapes]
    return chosen


def _shapes(info: ProblemInfo) -> Sequence[Shape]:
    return [spec.shape for spec in (*info.inputs, *info.parameters)]


def _sizes(problem: Problem) -> dict[str, int]:
    """Return the constants that may shrink; of attention only the sequence lengths."""
    tree = parse_python(problem.source)
    overrides = {**problem.settings, **problem.workloads[0].settings}
    if problem.kind is ProblemKind.ATTENTION:
        found: dict[str, Constant] = attention_sizes(tree, overrides)
        found = {name: found[name] for name in ("S", "Skv") if name in found}
    else:
        found = fold_constants(tree, overrides)
    return {n: v for n, v in found.items() if isinstance(v, int) and not isinstance(v, bool)}
