"""Steps: results that a rounding error moves from one whole number to the next.

Where an output is made of floating-point values by a step (rounding to int8, a comparison, a bin of
a histogram, the index of a maximum of computed scores), the exact result is not what a legitimate
implementation gives everywhere: `x / (amax / 127)` and `x * (127 / amax)` differ by a unit in the
last place, and where that crosses a half, by one whole. Eager itself is off there.

So an element that differs from the golden is right where eager has it so, or the golden of inputs
moved by a rounding error: each by 4 units in the last place of float32 (the gate's rounding floor),
up or down at random, TRIALS times; and by a unit of 16 bits where inputs or parameters have no
more. There may be no more such elements than four times
those that eager, or a rounding error of float32, moves (as for gross errors, `gross.py`).

An element that stands on a step exactly (`x > 0` at 0.5 and 0.5) moves with any error: there
nothing rounds, and all have to agree, as eager does. Where eager does not, they need not.

Runs only where an output of integers or booleans differs. Not here: equal elements of which either
may be named (`ties.py`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from hotloop.errors import ProblemError
from hotloop.worker.draw import Draw, Reference
from hotloop.worker.memory import release_memory
from hotloop.worker.module_runner import tensors_of

TRIALS = 12
"""An element one unit from a step is found by each with probability 1/2 at least."""
UNITS = 4.0
"""Of the last place of float32, or of float64 where inputs are."""
TINY = 2.0**-46
"""Relative; below what float32 rounds by, above what float64 does."""
MOST_TIMES = 4
FEW = 4
"""More of them, each explained as well: a kernel may be off in a draw in which eager is not."""
SEED = 11


def only_steps(reference: Reference, draw: Draw, position: int, candidate: Tensor) -> bool:
    """Whether an output of integers or booleans differs from the golden by rounding alone.

    Args:
        reference: of the problem.
        draw: whose inputs the call had.
        position: of the output.
        candidate: the output.
    """
    inputs = [t for t in tensors_of(draw.inputs) if t.is_floating_point()]
    if candidate.is_floating_point() or candidate.is_complex() or not inputs:
        return False
    try:
        return _Steps(reference, draw, position, candidate).explain()
    except Exception:  # noqa: BLE001  other values may be refused, or take more memory than there is
        release_memory()
        return False  # without the runs nothing is excused


class _Steps:
    """One output of one draw, and what moving its inputs does to it."""

    def __init__(self, reference: Reference, draw: Draw, position: int, candidate: Tensor) -> None:
        self._reference, self._draw, self._position = reference, draw, position
        self._golden = self._result(draw)
        self._candidate = candidate.to(self._golden.dtype)
        eager = reference.eager(draw)[position]
        self._off = eager != self._golden
        self._explained = self._candidate == eager

    def explain(self) -> bool:
        """Whether rounding explains every element that differs."""
        wrong = self._candidate != self._golden
        if not bool(wrong.any()):
            return True
        on_step = self._moved(TINY, counts=False)
        if not bool((on_step & self._off).any()) and bool((on_step & wrong).any()):
            return False
        tensors = [*tensors_of(self._draw.inputs), *self._draw.state.values()]
        floats = [t.dtype for t in tensors if t.is_floating_point()]
        wide = torch.float64 if torch.float64 in floats else torch.float32
        moved = self._moved(UNITS * torch.finfo(wide).eps)
        narrow = max((torch.finfo(d).eps for d in floats if d.itemsize == 2), default=None)
        if narrow is not None:
            self._moved(narrow)
        most = MOST_TIMES * max(int(self._off.sum()), int(moved.sum())) + FEW
        return int(wrong.sum()) <= most and not bool((wrong & ~self._explained).any())

    def _moved(self, by: float, *, counts: bool = True) -> Tensor:
        """Return where inputs moved by so much change the golden.

        Args:
            by: share of each element.
            counts: whether the candidate may have what comes out.
        """
        moved = torch.zeros_like(self._golden, dtype=torch.bool)
        gen = torch.Generator(self._golden.device).manual_seed(SEED)
        for _ in range(TRIALS):
            values = tuple(_nudged(value, by, gen) for value in self._draw.inputs)
            result = self._result(dataclasses.replace(self._draw, inputs=values))
            if result.shape != self._golden.shape:
                raise ProblemError("the output's size follows from values")
            moved |= result != self._golden
            if counts:
                self._explained |= self._candidate == result
        return moved

    def _result(self, draw: Draw) -> Tensor:
        return self._reference.golden(draw)[self._position]


def _nudged(value: Any, by: float, gen: torch.Generator) -> Any:
    """Return an argument with each element made larger or smaller by a share of it.

    In float64 where its dtype has no room for that.
    """

    def one(x: Any) -> Any:
        if not (isinstance(x, Tensor) and x.is_floating_point()):
            return x
        down = torch.randint(0, 2, x.shape, generator=gen, device=x.device, dtype=torch.bool)
        wide = x.to(torch.float64)
        wide = torch.where(down, wide * (1.0 - by), wide * (1.0 + by))
        return wide.to(x.dtype) if by >= torch.finfo(x.dtype).eps else wide

    return torch.utils._pytree.tree_map(one, value)
