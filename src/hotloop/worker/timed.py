"""Inputs of timed calls, and what their outputs must be.

One draw whose input values are replaced in place before every call. The state (parameters, captured
tensors) stays, as it does between calls of a model in use. The trusted outputs come from a
legitimate implementation on the judge's own copies: compiled FlexAttention for attention, eager for
models.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from hotloop.core.audit import Audit
from hotloop.worker.cases import Case
from hotloop.worker.clock import make_clock
from hotloop.worker.compare import Bound, Rigour, timed_gate
from hotloop.worker.compulsory import compulsory
from hotloop.worker.copy_out import copy_out
from hotloop.worker.error_stats import error_stats
from hotloop.worker.module_host import flatten_outputs
from hotloop.worker.physics_floor import Demand
from hotloop.worker.reference import Draw, Reference
from hotloop.worker.steps import only_steps
from hotloop.worker.tf32_cut import CutRuns
from hotloop.worker.ties import only_ties


@dataclass(slots=True)
class TimedInputs:
    """The timed draw of one problem; judge side only."""

    reference: Reference
    draw: Draw
    bounds: tuple[Bound, ...]
    oracle: Callable[[], Any]
    copy_out_ms: float
    """What copying one call's outputs takes on this device."""
    audit: Audit | None = None
    """Says which inputs the outputs depend on."""
    _demand: list[Demand | None] = field(default_factory=list)
    """What a call cannot do without; found once, where it is asked for."""

    @classmethod
    def build(
        cls,
        reference: Reference,
        draw: Draw,
        case: Case,
        oracle: Callable[[], Any],
        audit: Audit | None = None,
    ) -> TimedInputs:
        """Wrap a draw; measures the cost of copying its outputs.

        Raises:
            ValueError: no output of a timed call could be told from a wrong one.
        """
        bounds = telling_bounds(case)
        outputs = flatten_outputs(oracle(), reference.device)
        return cls(reference, draw, bounds, oracle, _copy_ms(outputs), audit)

    def redraw(self, seed: int | None = None) -> int:
        """Put new input values in place; returns the (secret) seed that draws them again."""
        seed = secret_seed() if seed is None else seed
        self.reference.redraw_inputs(self.draw, seed)
        return seed

    def demand(self) -> Demand | None:
        """Return what a call cannot do without, found once; None where nothing is known."""
        if not self._demand:
            self._demand.append(compulsory(self.reference, self.draw, self.audit))
        return self._demand[0]

    def trusted(self) -> list[torch.Tensor]:
        """Return the trusted outputs for the values now in place."""
        return flatten_outputs(self.oracle(), self.reference.device)

    def is_right(self, i: int, output: torch.Tensor, expected: torch.Tensor) -> bool:
        """Whether output `i` of a timed call passes beside the trusted one of the same values.

        An index may name an equal element, TF32 be cut instead of rounded.
        """
        bound = self.bounds[i]
        if timed_gate(output, expected, bound):
            return True
        if only_ties(self.reference, self.draw, i, output, expected):
            return True
        if bound.exact and only_steps(self.reference, self.draw, i, output):
            return True
        if bound.exact or error_stats(output, expected).nonfinite:
            return False  # cutting makes no NaN or Inf
        cut = CutRuns(self.reference, self.draw)
        return cut.excuses(i, output, expected, lambda c: timed_gate(c, expected, bound))


def telling_bounds(case: Case) -> tuple[Bound, ...]:
    """Return the bounds of a case whose values calls can be timed on.

    Raises:
        ValueError: all outputs are looked at for gross errors only. Admission puts such values last
            and refuses problems that have no others, so nobody times on them; a kernel could then
            give results of earlier calls.
    """
    if all(bound.rigour is Rigour.GROSS and not bound.exact for bound in case.bounds):
        raise ValueError(
            f"expected timed values on which a wrong output shows, got {case.profile!r}: its "
            "outputs are looked at for gross errors only; time on another profile"
        )
    return case.bounds


def secret_seed() -> int:
    """Return a seed that nobody outside this process knows, 0 to 2**31 - 1."""
    return int.from_bytes(os.urandom(4), "big") >> 1


def _copy_ms(outputs: list[torch.Tensor]) -> float:
    clock = make_clock_once()
    targets = [torch.empty_like(t) for t in outputs]

    def copy() -> None:
        for target, source in zip(targets, outputs, strict=True):
            copy_out(target, source)

    return statistics.median(clock.measure(copy)[1].elapsed_ms for _ in range(7))


_CLOCK: list[Any] = []


def make_clock_once() -> Any:
    """Return this process's clock: CUPTI may be subscribed once a process."""
    if not _CLOCK:
        _CLOCK.append(make_clock())
    return _CLOCK[0]


def rest_clock() -> None:
    """Let this process's clock record nothing until the next measurement.

    Goldens and envelopes launch 100,000s of small kernels, and records that nobody reads slow each
    launch down (see `CuptiClock.pause`).
    """
    if _CLOCK:
        _CLOCK[0].pause()
