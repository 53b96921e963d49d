"""Admission: which value profiles can judge candidates of a model reference.

A profile is left out, with a note, when the reference does not accept its values, when a result is
not finite, or when eager itself is far off the golden: then the gate would pass anything. Those of
the fast tier are tried here, when the problem is loaded; those that the final tier adds are tried
when a candidate gets there (`final_books.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING

import torch

from hotloop.core.problem import NOTHING_TELLS
from hotloop.core.verdict import Tier
from hotloop.errors import ProblemError
from hotloop.worker.apart import FACTORS, holds
from hotloop.worker.bound import Rigour
from hotloop.worker.draw import Outputs, broken_reason, ill_output, ill_reason
from hotloop.worker.error_stats import error_stats, size_stats
from hotloop.worker.nonfinite import void_reason
from hotloop.worker.pieces import all_finite, end_share, error_carriers, largest_abs
from hotloop.worker.value_profiles import (
    EXACT_FRAC,
    FAR_SCALE,
    LARGE_SCALES,
    LARGEST_FRAC,
    MODEL_PROFILES,
    RANDOM_PARAMETERS,
    TIES,
    largest_exact,
    names,
)

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference

TRIAL_SEED = 3
FAR_ROOM = 8.0
"""Each input's dtype holds this many deviations of `far`."""
CARRIER_FRAC, CARRIERS = 0.125, 256
"""So many elements carry the error of `far` at least: an eighth of all (a third do where errors are
normally distributed), or so many that their root mean square is known to some 5 %."""
SATURATED_FRAC = 0.9
"""An output of `far` with more of its elements at an end of its range judges no precision, only
how many come out at the wrong end (`gross.py`)."""
FEW = 64
"""Outputs of fewer elements are not asked: a sum has one, which is both ends."""
USUAL = ("shipped", "normal")
ILL_FACTOR = 8.0
"""Eager's error on far values, relative to the output's RMS, over that on `USUAL` ones, from which
far values have wider bounds. Sums and norms of any scale stay under 2; a sigmoid behind a
convolution, with a norm after it that moves its 0 and 1, is at 33 on KernelBench 2/21."""


def admitted(reference: ModelReference) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the profiles that apply, and those whose outputs must be exact.

    Raises:
        ProblemError: the reference fails on its own inputs, or no profile is left.
    """
    refused: dict[str, str] = {}
    trials = _Trials(reference)
    profiles = tuple(p for p in applicable(reference) if reference.loaded.wants(p))
    for profile in profiles:
        reason = trials.of(profile)
        if reason is not None:
            refused[profile] = reason
            reference.note(f"value profile {profile!r} left out: {reason}")
    weak = {"far"} if set(reference.reach.far) == {Rigour.GROSS} else set()
    kept = tuple(p for p in profiles if p not in refused)
    wanted = reference.loaded.wants("parameters") and reference.constant_names
    if wanted and not RANDOM_PARAMETERS & set(kept):
        reason = trials.plain("parameters")
        if reason is None:
            kept = (*kept, "parameters")
        else:
            reference.note(f"value profile 'parameters' left out: {reason}")
    if not set(kept) - weak:
        raise ProblemError(
            f"{NOTHING_TELLS}: "
            + "; ".join((*reference.degenerate(), *(f"{p}: {r}" for p, r in refused.items())))
        )
    kept = (*(p for p in kept if p not in weak), *(p for p in kept if p in weak))
    return kept, frozenset(kept) & {"integers"}


def applicable(reference: ModelReference) -> tuple[str, ...]:
    """Return the profiles that make sense for the reference's inputs and operations."""
    free = [source is not None for source in reference.sources]
    if reference.census.asserts:
        reference.note(
            f"only the file's own values are used: {', '.join(reference.census.asserts)} accepts "
            "only a range of values"
        )
        return ("shipped",)
    if not any(free):
        reference.note("only the file's own inputs are used: they have a structure to be kept")
        return ("shipped", "normal") if reference.constant_names else ("shipped",)
    biased = ("biased",) if reference.takes_biases else ()
    profiles = ("shipped", "normal", "positive_mean", "negative", "large", "far", *biased)
    return (*profiles, "integers") if reference.census.multilinear and all(free) else profiles


def for_final(reference: ModelReference) -> tuple[str, ...]:
    """Return the profiles that the final tier adds where they make sense, not tried."""
    if reference.census.asserts or all(source is None for source in reference.sources):
        return ()
    if "large" not in reference.profiles:
        reference.reach.scale = 1.0  # `sorted` takes it too
    profiles = names(MODEL_PROFILES, Tier.FINAL)
    _, outputs, _ = reference.specs()
    if all(spec.dtype.startswith(("float", "bfloat")) for spec in outputs):
        return profiles
    reference.note(
        "no values with ties at the final tier: which of equal elements an integer output names is "
        "left open"
    )
    return tuple(p for p in profiles if p not in TIES)


@dataclass(slots=True)
class _Trials:
    """Tries value profiles on one reference; the ordinary ones first."""

    reference: ModelReference
    usual: list[float] = field(default_factory=list)
    """Eager's largest relative error on `USUAL` values so far, one an output."""

    def of(self, profile: str) -> str | None:
        """Return why a profile cannot judge candidates, or None."""
        special = {
            "integers": self._exact,
            "large": self._large,
            "negative": self._negative,
            "far": self._far,
        }
        return special[profile]() if profile in special else self.plain(profile)

    def plain(self, profile: str, *, below: float | None = None) -> str | None:
        """Return why the values as they are drawn cannot judge candidates, or None.

        Args:
            profile: the value profile.
            below: share of the dtype's largest value that the outputs have to stay under.
        """
        reference = self.reference
        draw = reference.draw(TRIAL_SEED, profile)
        try:
            eager, golden = reference.eager(draw), reference.golden(draw)
        except ProblemError as exc:
            if profile == "shipped":
                raise
            return f"the reference does not accept such values ({exc})"
        if profile == "shipped":
            reference.nonfinite = not all(all_finite(g) for g in golden if g.is_floating_point())
        if profile == "shipped" and any(map(_is_void, eager, golden)):
            raise ProblemError(
                "the reference's output on its own inputs should be finite, got Inf or NaN (that "
                "float64 does not have too, or nearly everywhere); mend forward or get_inputs"
            )
        reason = broken_reason(eager, golden, nonfinite=reference.nonfinite)
        if reason is None and profile != "far":
            reason = ill_reason(eager, golden)
        if reason is None and below is not None:
            reason = _near_overflow(eager, below)
        if reason is None and profile in USUAL:
            errors = _relative_errors(eager, golden)
            self.usual = [max(pair) for pair in zip_longest(self.usual, errors, fillvalue=0.0)]
        if reason is None and profile == "far":
            self._weigh_far(eager, golden)
        if reason is None and profile == "biased":
            found = (_concentrated(i, *p) for i, p in enumerate(zip(eager, golden, strict=True)))
            reason = next((why for why in found if why is not None), None)
        return reason

    def _weigh_far(self, eager: Outputs, golden: Outputs) -> None:
        """Choose each output's rules for far values; note where they measure conditioning."""
        if not self.usual:
            self.plain("normal")  # not wanted as a profile, or refused: then nothing is usual
        errors = _relative_errors(eager, golden)
        usual = self.usual or [math.inf] * len(errors)
        self.reference.reach.far = tuple(
            self._rules(i, (got, want), errors[i] / usual[i])
            for i, (got, want) in enumerate(zip(eager, golden, strict=True))
        )

    def _rules(self, i: int, pair: tuple[torch.Tensor, torch.Tensor], times: float) -> Rigour:
        why = ill_output(i, *pair) or _concentrated(i, *pair)
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

    def _large(self) -> str | None:
        reason = None
        for scale in LARGE_SCALES:
            self.reference.reach.scale = scale
            reason = self.plain("large", below=LARGEST_FRAC)
            if reason is None:
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
                break
        return reason

    def _far(self) -> str | None:
        inputs, _, _ = self.reference.specs()
        for spec in inputs:
            dtype = getattr(torch, spec.dtype)
            if dtype.is_floating_point and torch.finfo(dtype).max < FAR_ROOM * FAR_SCALE:
                return f"{spec.dtype}, which input {spec.name} has, does not hold such values"
        return self.plain("far", below=LARGEST_FRAC)

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


def _is_void(got: torch.Tensor, want: torch.Tensor) -> bool:
    return want.dtype.is_floating_point and void_reason(got, want, allowed=True) is not None


def _relative_errors(eager: Outputs, golden: Outputs) -> list[float]:
    """Return RMSE over RMS of each output, at least its dtype's epsilon: nobody is exact on luck.

    An output that is not floating point, or 0 everywhere, has the epsilon of float32.
    """
    errors = []
    for got, want in zip(eager, golden, strict=True):
        if not got.dtype.is_floating_point:
            errors.append(torch.finfo(torch.float32).eps)
            continue
        size = size_stats(want).rmse
        share = error_stats(got, want).rmse / size if size else 0.0
        errors.append(max(share, torch.finfo(got.dtype).eps))
    return errors


def _concentrated(i: int, got: torch.Tensor, want: torch.Tensor) -> str | None:
    """Return why a few elements of output `i` would stand for all on this or another seed, or None.

    Behind a tanh or a softmax of far values nearly all results are 0 or 1 to the last bit. The few
    between, where a seed has any, carry the whole error of eager, and which of them is off by how
    much is luck: honest kernels would be refused on some seeds.
    """
    if not want.dtype.is_floating_point or want.numel() < FEW:
        return None
    if end_share(want) > SATURATED_FRAC:
        return f"nearly all elements of output {i} are 0, its largest or its smallest value"
    carriers = error_carriers(got, want)
    if 0 < carriers < min(CARRIER_FRAC * want.numel(), CARRIERS):
        return f"{carriers:.0f} of {want.numel()} elements of output {i} carry the error"
    return None


def _near_overflow(eager: Outputs, below: float) -> str | None:
    for i, output in enumerate(eager):
        if output.dtype.is_floating_point and output.numel():
            largest = below * torch.finfo(output.dtype).max
            if largest_abs(output) >= largest:
                return f"output {i} of the reference is over {largest:.3g}, near its dtype's end"
    return None
