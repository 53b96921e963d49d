"""Subject: one checked case as the audit sees it, and the question whether an output passes there.

A fake is judged by the gate that judges candidates (`compare.py`), and by the problem's own
tolerances. Nothing here knows what a fake is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from hotloop.worker.cases import Case
from hotloop.worker.compare import Bound, Rigour, tail_limit, within_declared
from hotloop.worker.draw import Draw, Outputs, Reference
from hotloop.worker.error_stats import same_nonfinite
from hotloop.worker.known_case import Known
from hotloop.worker.pieces import PIECE, largest_abs
from hotloop.worker.tf32_cut import may_be_cut

PROBE = 1 << 20
"""Elements at either end and in the middle that are looked at first: most fakes fail there."""
SAME_FRAC = 1e-9
"""Relative difference, in float64, up to which two results are the same function's."""

Made = Mapping[int, Tensor]
"""A fake's outputs by position; those that are not named are the reference's own."""


@dataclass(slots=True)
class Subject:
    """One case with its inputs, expected values and the reference's own outputs."""

    reference: Reference
    case: Case
    draw: Draw
    goldens: Outputs
    honest: Outputs
    """Eager's outputs."""
    _other: Draw | None = None
    _old: Outputs | None = None

    @property
    def where(self) -> str:
        """Workload and value profile, for people."""
        return f"{self.case.workload}: {self.case.profile}"

    def other(self) -> Draw:
        """Return a draw of the same profile with another seed."""
        if self._other is None:
            self._other = self.reference.draw(self.case.seed + 1, self.case.profile)
        return self._other

    def old(self) -> Outputs:
        """Return the outputs of that other draw: what an earlier call left behind."""
        if self._old is None:
            self._old = self.reference.eager(self.other())
        return self._old

    def with_input(self, index: int, values: Tensor) -> Draw:
        """Return the draw with other values as argument `index`."""
        inputs = tuple(values if i == index else v for i, v in enumerate(self.draw.inputs))
        return dataclasses.replace(self.draw, inputs=inputs)

    def with_state(self, values: Mapping[str, Tensor]) -> Draw:
        """Return the draw with other parameters or buffers."""
        return dataclasses.replace(self.draw, state={**self.draw.state, **values})

    def passes(self, made: Made) -> bool:
        """Whether the checks take these outputs for the candidate's honest ones."""
        return all(self._passes(i, tensor) for i, tensor in made.items())

    def is_golden(self, draw: Draw) -> bool:
        """Whether the reference gives this draw the same expected values as the case's own."""
        return all(map(is_same, self.reference.golden(draw), self.goldens))

    def _passes(self, index: int, made: Tensor) -> bool:
        golden, bound = self.goldens[index], self.case.bounds[index]
        if made.shape != golden.shape:
            return False  # of a reference whose shapes depend on the values
        made = made.to(bound.dtype)
        if not may_be_cut(self.reference) and _fails_at_a_glance(made, golden, bound):
            return False
        if not Known(self.reference, self.case, self.draw, self.goldens).judge(index, made).passed:
            return False
        stated = self.reference.loaded.problem.tolerances
        if not stated or bound.rigour is not Rigour.FULL:
            return True
        atol, rtol = stated.get("atol", 0.0), stated.get("rtol", 0.0)
        return within_declared(made, golden, atol=atol, rtol=rtol)


def is_same(a: Tensor, golden: Tensor) -> bool:
    """Whether two results are equal but for float64 rounding."""
    if a.shape != golden.shape:
        return False
    if not golden.dtype.is_floating_point:
        return bool(torch.equal(a.to(golden.dtype), golden))
    largest = largest_abs(golden)
    if not math.isfinite(largest):
        largest = largest_abs(golden[torch.isfinite(golden)])
    limit = SAME_FRAC * largest
    pairs = zip(a.reshape(-1).split(PIECE), golden.reshape(-1).split(PIECE), strict=True)
    for x, y in pairs:
        x, y = x.double(), y.double()
        if not bool((((x - y).abs() <= limit) | same_nonfinite(x, y)).all()):
            return False
    return True


def _fails_at_a_glance(made: Tensor, golden: Tensor, bound: Bound) -> bool:
    """Whether a few pieces are enough to see that the gate refuses it."""
    count = golden.numel()
    if count <= 4 * PROBE or made.dtype is torch.int64 or bound.rigour is Rigour.GROSS:
        return False  # the gate itself is as quick; indices may be ties
    flat, expected = made.reshape(-1), golden.reshape(-1)
    limit = 0.0 if bound.exact else tail_limit(bound)
    for start in (count - PROBE, 0, count // 2):
        got, want = flat[start : start + PROBE].double(), expected[start : start + PROBE].double()
        within = ((got - want).abs_() <= limit) | same_nonfinite(got, want)
        if not bool(within.all()):
            return True
    return False
