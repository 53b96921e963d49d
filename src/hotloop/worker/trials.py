"""Trials: how a value profile is tried on a model reference, and how far its values may go.

Each kind of values goes as far as the reference bears: factors from the widest to the plain ones,
signs left away where negative numbers have no result.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

import torch

from hotloop.errors import ProblemError
from hotloop.worker import constant_inputs
from hotloop.worker.apart import FACTORS, holds
from hotloop.worker.bias_trials import biased_reason
from hotloop.worker.bound import Rigour
from hotloop.worker.draw import Outputs, broken_reason, ill_output, ill_reason
from hotloop.worker.eager_errors import concentrated, is_void, near_overflow, relative_errors
from hotloop.worker.far_sides import far_reason
from hotloop.worker.mask_rows import FORMS
from hotloop.worker.memory import ran_out
from hotloop.worker.parameter_trials import large_constants, with_constants
from hotloop.worker.parameters import RANKS, has_maximum
from hotloop.worker.pieces import all_finite, largest_abs
from hotloop.worker.random_sources import MASK
from hotloop.worker.reductions import Reductions, has_minimum
from hotloop.worker.value_profiles import (
    EXACT_FRAC,
    FAR_SCALE,
    LARGE_SCALES,
    LARGEST_FRAC,
    largest_exact,
)

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference

TRIAL_SEED = 3
FAR_ROOM = 8.0
"""Each input's dtype holds this many deviations of `far`."""
USUAL = ("shipped", "normal")
LOOKED_AT = ("negative", "far")
ILL_FACTOR = 8.0
"""Eager's error on far values, relative to the output's RMS, over that on `USUAL` ones, from which
far values have wider bounds. Sums and norms of any scale stay under 2; a sigmoid behind a
convolution, with a norm after it that moves its 0 and 1, is at 33 on KernelBench 2/21."""
MASKED_FACTOR = 4.0
"""Masks get empty and full rows where that is so: scores of -1e9 added drown the others."""
OPPOSED_FACTOR = 4.0
"""The same of opposed scales, which change no bit of a product alone."""
ALIKE_FACTOR = 4.0
"""The same of inputs alike: an angle between them is rounding error in every implementation."""
WIDE_FACTOR = 4.0
"""The same of other constants on large values."""
FEW_TIED = 1e-3
"""So large a share may be equal beside: float32 numbers are alike now and then."""


@dataclass(slots=True)
class Trials:
    """Tries value profiles on one reference; the ordinary ones first."""

    reference: ModelReference
    usual: list[float] = field(default_factory=list)
    """Eager's largest relative error on `USUAL` values so far, one an output."""
    errors: list[float] = field(default_factory=list)
    """Eager's relative errors on what was tried last; empty where that was refused."""
    is_nan: bool = False
    """Whether the golden of what was tried last has a NaN."""
    seen: Reductions = field(default_factory=Reductions)
    """What eager reduced on what was tried last; looked at on `LOOKED_AT` values."""
    is_broken: bool = False
    """Whether the reference raised, or gave NaN or Inf, on what was tried last."""
    tied: float = 0.0
    """Share of equal ones among ranked values of the file."""
    shapes: tuple[torch.Size, ...] = ()
    """Of the outputs of what was tried last."""

    def of(self, profile: str) -> str | None:
        """Return why a profile cannot judge candidates, or None.

        Where it cannot with all inputs varied, as many as the reference bears are.
        """
        self.is_broken, search, kept = False, self.reference.kept_inputs, self.reference.reach.kept
        reason = self._of_all(profile)
        breaks = TRIAL_SEED if reason is not None and self.is_broken else None
        seed = search.broken_by_luck(profile) if reason is None else breaks
        if seed is None or not search.find(profile, kept, seed):
            return reason
        if self._of_all(profile) is None:
            return None
        del kept[profile]
        return reason if reason is not None else self._of_all(profile)

    def _of_all(self, profile: str) -> str | None:
        special = {
            "integers": self._exact,
            "normal": self._normal,
            "parameters": lambda: with_constants(self, "parameters"),
            "large": self._large,
            "negative": self._negative,
            "far": self._far,
            "opposed": lambda: self._as_usual("opposed", OPPOSED_FACTOR, below=LARGEST_FRAC),
            "alike": self._alike,
            "biased": lambda: biased_reason(self),
        }
        return special[profile]() if profile in special else self.plain(profile)

    def plain(self, profile: str, *, below: float | None = None) -> str | None:
        """Return why the values as they are drawn cannot judge candidates, or None.

        Args:
            profile: the value profile.
            below: share of the dtype's largest value that the outputs have to stay under.
        """
        reference = self.reference
        self.is_nan = False
        draw = reference.draw(TRIAL_SEED, profile)
        try:
            self.seen = Reductions(draw.inputs)
            is_seen = profile in LOOKED_AT or reference.census.names & RANKS
            with self.seen if is_seen else nullcontext():
                eager = reference.eager(draw)
            self.seen.returned(eager)
            golden = reference.golden(draw)
        except ProblemError as exc:
            if profile == "shipped":
                raise
            self.is_broken = not ran_out(exc)
            return f"the reference does not accept such values ({exc})"
        if profile == "shipped":
            self.tied = self.seen.tied
            reference.nonfinite = not all(all_finite(g) for g in golden if g.is_floating_point())
        if profile == "shipped" and any(map(is_void, eager, golden)):
            raise ProblemError(
                "the reference's output on its own inputs should be finite, got Inf or NaN (that "
                "float64 does not have too, or nearly everywhere); mend forward or get_inputs"
            )
        self.shapes = tuple(output.shape for output in eager)
        self.is_nan = any(bool(g.isnan().any()) for g in golden)
        reason = broken_reason(eager, golden, nonfinite=reference.nonfinite)
        self.is_broken = reason is not None
        if reason is None and profile != "far" and not self.is_gross(profile):
            reason = ill_reason(eager, golden)
        if reason is None and below is not None:
            reason = near_overflow(eager, below)
        if reason is None and self.seen.tied > self.tied + FEW_TIED:
            reason = "values that are ranked become equal, and their order luck"
        self.errors = relative_errors(eager, golden) if reason is None else []
        if reason is None and profile in USUAL:
            pairs = zip_longest(self.usual, self.errors, fillvalue=0.0)
            self.usual = [max(pair) for pair in pairs]
        if reason is None and profile == "far":
            self._weigh_far(eager, golden)
        if reason is None and profile == "biased" and not self.is_gross(profile):
            found = (concentrated(i, *p) for i, p in enumerate(zip(eager, golden, strict=True)))
            reason = next((why for why in found if why is not None), None)
        return reason

    def _weigh_far(self, eager: Outputs, golden: Outputs) -> None:
        """Choose each output's rules for far values; note where they measure conditioning."""
        if not self.usual:
            self.plain("normal")  # not wanted as a profile, or refused: then nothing is usual
        errors = relative_errors(eager, golden)
        usual = self.usual or [math.inf] * len(errors)
        self.reference.reach.rules["far"] = tuple(
            self._rules(i, (got, want), errors[i] / usual[i])
            for i, (got, want) in enumerate(zip(eager, golden, strict=True))
        )

    def _rules(self, i: int, pair: tuple[torch.Tensor, torch.Tensor], times: float) -> Rigour:
        why = ill_output(i, *pair) or concentrated(i, *pair)
        if why is not None:
            self.reference.note(f"value profile 'far' refuses gross errors only: {why}")
            return Rigour.GROSS
        if times <= ILL_FACTOR:
            return Rigour.FULL
        self.reference.note(
            f"value profile 'far' has wider bounds: output {i} of the reference itself is "
            f"{times:.0f} times as far off there as on ordinary values"
        )
        return Rigour.ROUGH

    def is_gross(self, profile: str) -> bool:
        """Return whether an output is looked at for gross errors only."""
        return Rigour.GROSS in self.reference.reach.rules.get(profile, ())

    def _normal(self) -> str | None:
        """Without signs where negative numbers have no result; masks with ends where they have."""
        reach, reason = self.reference.reach, with_constants(self, "normal")
        if reason is not None and self.is_nan:
            reason = self._without_signs()
        if reason is not None:
            reach.has_buffers = True  # what failed had nothing to do with them
        elif MASK in self.reference.sources or constant_inputs.masks(reach, "normal"):
            self._mask("normal")
        return reason

    def _without_signs(self) -> str | None:
        """Take signs from the inputs that have to be positive, or from all; why not, or None."""
        reach = self.reference.reach
        if self.reference.kept_inputs.find("normal", reach.unsigned_inputs):
            reach.has_buffers = True
            if with_constants(self, "normal") is None:
                return None
            del reach.unsigned_inputs["normal"]
        reach.unsigned.add("normal")
        reach.has_buffers = True
        reason = with_constants(self, "normal")
        if reason is not None:
            reach.unsigned.clear()
        return reason

    def _mask(self, profile: str) -> None:
        """Make rows of random masks of the kinds that the reference bears."""
        masked, before, usual = self.reference.reach.masked, self.errors, list(self.usual)
        for kinds in FORMS:
            masked[profile] = kinds
            if self.plain(profile) is None and not self.is_worse(before, MASKED_FACTOR):
                break
        else:
            del masked[profile]
        self.usual = usual

    def is_worse(self, than: list[float], factor: float) -> bool:
        """Return whether eager was over `factor` times as far off on what was tried last."""
        return any(a > factor * b for a, b in zip(self.errors, than, strict=True))

    def _as_usual(self, profile: str, factor: float, *, below: float | None = None) -> str | None:
        reason = self.plain(profile, below=below)
        if reason is None and not self.usual:
            return "nothing is known of ordinary values"
        if reason is None and self.is_worse(self.usual, factor):
            return "the reference itself is further off there than on ordinary values"
        return reason

    def _alike(self) -> str | None:
        unsigned = self.reference.reach.unsigned
        has_no_signs = "normal" in unsigned or "normal" in self.reference.reach.unsigned_inputs
        unsigned |= {"alike"} if has_no_signs else set()
        return self._as_usual("alike", ALIKE_FACTOR)

    def _large(self) -> str | None:
        reason = None
        for scale in LARGE_SCALES:
            self.reference.reach.scale = scale
            reason = self.plain("large", below=LARGEST_FRAC)
            if reason is None:
                large_constants(self, WIDE_FACTOR)
                constant_inputs.vary_as(self, "large", "normal")
                break
        return reason

    def _negative(self) -> str | None:
        reason = None
        inputs, _, _ = self.reference.specs()
        for factors in FACTORS:
            if not all(holds(getattr(torch, spec.dtype), factors) for spec in inputs):
                continue
            self.reference.reach.factors = factors
            reason = self.plain("negative", below=LARGEST_FRAC if len(factors) > 1 else None)
            if reason is None:
                self._zero_columns()
                break
        return reason

    def _zero_columns(self) -> None:
        """Make columns of `negative` 0 where sums over all rows bear it, and extrema need none."""
        reference, before = self.reference, self.errors
        if has_maximum(reference.census) or has_minimum(reference.census):
            return
        if not self.seen.leaves_columns:
            return
        reference.reach.zero_columns = True
        reason = self.plain("negative", below=LARGEST_FRAC)
        reference.reach.zero_columns = reason is None and not self.is_worse(before, MASKED_FACTOR)

    def _far(self) -> str | None:
        inputs, _, _ = self.reference.specs()
        for spec in inputs:
            dtype = getattr(torch, spec.dtype)
            if dtype.is_floating_point and torch.finfo(dtype).max < FAR_ROOM * FAR_SCALE:
                return f"{spec.dtype}, which input {spec.name} has, does not hold such values"
        return far_reason(self)

    def _exact(self) -> str | None:
        draw = self.reference.draw(TRIAL_SEED, "integers")
        eager, golden = self.reference.eager(draw), self.reference.golden(draw)
        for got, want in zip(eager, golden, strict=True):
            if not torch.equal(got.double(), want):
                return "sums of integers are not exact in the output's dtype"
            limit = EXACT_FRAC * largest_exact(got.dtype)
            if want.numel() and largest_abs(want) > limit:
                return f"sums of integers over {limit:.0f} may not be exact in the output's dtype"
        return None
