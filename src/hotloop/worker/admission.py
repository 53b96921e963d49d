"""Admission: which value profiles can judge candidates of a model reference.

A profile is left out, with a note, when the reference does not accept its values, when a result is
not finite, or when eager itself is far off the golden: then the gate would pass anything. Those of
the fast tier are tried here, when the problem is loaded; those that the final tier adds are tried
when a candidate gets there (`final_books.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hotloop.core.problem import NOTHING_TELLS
from hotloop.core.verdict import Tier
from hotloop.errors import ProblemError
from hotloop.worker.draw import Outputs, unfit_reason
from hotloop.worker.nonfinite import void_reason
from hotloop.worker.pieces import all_finite, end_share, error_carriers, largest_abs
from hotloop.worker.value_profiles import (
    EXACT_FRAC,
    FACTORS,
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
"""An output of `far` with more of its elements at an end of its range judges nothing."""
FEW = 64
"""Outputs of fewer elements are not asked: a sum has one, which is both ends."""


def admitted(reference: ModelReference) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the profiles that apply, and those whose outputs must be exact.

    Raises:
        ProblemError: the reference fails on its own inputs, or no profile is left.
    """
    refused: dict[str, str] = {}
    profiles = tuple(p for p in applicable(reference) if reference.loaded.wants(p))
    for profile in profiles:
        reason = _trial_of(reference, profile)
        if reason is not None:
            refused[profile] = reason
            reference.note(f"value profile {profile!r} left out: {reason}")
    kept = tuple(p for p in profiles if p not in refused)
    wanted = reference.loaded.wants("parameters") and reference.constant_names
    if wanted and not RANDOM_PARAMETERS & set(kept):
        reason = _trial(reference, "parameters")
        if reason is None:
            kept = (*kept, "parameters")
        else:
            reference.note(f"value profile 'parameters' left out: {reason}")
    if not kept:
        raise ProblemError(
            f"{NOTHING_TELLS}: "
            + "; ".join((*reference.degenerate(), *(f"{p}: {r}" for p, r in refused.items())))
        )
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
    profiles = ("shipped", "normal", "positive_mean", "negative", "large", "far")
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


def _trial_of(reference: ModelReference, profile: str) -> str | None:
    if profile == "integers":
        return _trial_exact(reference)
    if profile == "large":
        return _trial_large(reference)
    if profile == "negative":
        return _trial_negative(reference)
    if profile == "far":
        return _trial_far(reference)
    return _trial(reference, profile)


def _trial(
    reference: ModelReference,
    profile: str,
    *,
    below: float | None = None,
    is_spread: bool = False,
) -> str | None:
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
    reason = unfit_reason(eager, golden, nonfinite=reference.nonfinite)
    if reason is None and below is not None:
        reason = _near_overflow(eager, below)
    return _concentrated(eager, golden) if reason is None and is_spread else reason


def _is_void(got: torch.Tensor, want: torch.Tensor) -> bool:
    return want.dtype.is_floating_point and void_reason(got, want, allowed=True) is not None


def _trial_large(reference: ModelReference) -> str | None:
    reason = None
    for scale in LARGE_SCALES:
        reference.reach.scale = scale
        reason = _trial(reference, "large", below=LARGEST_FRAC)
        if reason is None:
            break
    return reason


def _trial_negative(reference: ModelReference) -> str | None:
    reason = None
    for factors in FACTORS:
        reference.reach.factors = factors
        reason = _trial(reference, "negative", below=LARGEST_FRAC if len(factors) > 1 else None)
        if reason is None:
            break
    return reason


def _trial_far(reference: ModelReference) -> str | None:
    inputs, _, _ = reference.specs()
    for spec in inputs:
        dtype = getattr(torch, spec.dtype)
        if dtype.is_floating_point and torch.finfo(dtype).max < FAR_ROOM * FAR_SCALE:
            return f"{spec.dtype}, which input {spec.name} has, does not hold such values"
    return _trial(reference, "far", below=LARGEST_FRAC, is_spread=True)


def _concentrated(eager: Outputs, golden: Outputs) -> str | None:
    """Return why the error of a few elements would stand for all, on this or another seed, or None.

    Behind a tanh or a softmax of far values nearly all results are 0 or 1 to the last bit. The few
    between, where a seed has any, carry the whole error of eager, and which of them is off by how
    much is luck: honest kernels would be refused on some seeds.
    """
    for i, (got, want) in enumerate(zip(eager, golden, strict=True)):
        if not want.dtype.is_floating_point or want.numel() < FEW:
            continue
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


def _trial_exact(reference: ModelReference) -> str | None:
    draw = reference.draw(TRIAL_SEED, "integers")
    for eager, golden in zip(reference.eager(draw), reference.golden(draw), strict=True):
        if not torch.equal(eager.double(), golden):
            return "sums of integers are not exact in the output's dtype"
        limit = EXACT_FRAC * largest_exact(eager.dtype)
        if golden.numel() and largest_abs(golden) > limit:
            return f"sums of integers over {limit:.0f} may not be exact in the output's dtype"
    return None
