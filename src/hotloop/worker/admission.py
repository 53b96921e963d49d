"""Admission: which value profiles can judge candidates of a model reference.

A profile is left out, with a note, when the reference does not accept its values, when a result is
not finite, or when eager itself is far off the golden: then the gate would pass anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from hotloop.errors import ProblemError
from hotloop.worker import inputs
from hotloop.worker.draw import unfit_reason

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference

TRIAL_SEED = 3


def admitted(reference: ModelReference) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the profiles that apply, and those whose outputs must be exact.

    Raises:
        ProblemError: the reference fails on its own inputs.
    """
    kept = []
    for profile in inputs.PROFILES:
        reason = _unfit(reference, profile)
        if reason is None:
            kept.append(profile)
        else:
            reference.note(f"value profile {profile!r} left out: {reason}")
    return tuple(kept), frozenset(kept) & {"integers"}


def _unfit(reference: ModelReference, profile: str) -> str | None:
    if profile == "shipped":
        return _trial(reference, profile)
    free = [s is not None for s in reference.sources]
    if reference.census.asserts:
        return f"{', '.join(reference.census.asserts)} accepts only a range of values"
    if not any(free) and not (profile == "normal" and reference.constant_names):
        return "the inputs have a structure that must be kept"
    if profile == "integers":
        if not (reference.census.multilinear and all(free)):
            return "sums are exact only where products are all there is"
        return _trial_exact(reference)
    if profile == "large":
        return _trial_large(reference)
    return _trial(reference, profile)


def _trial(reference: ModelReference, profile: str) -> str | None:
    draw = reference.draw(TRIAL_SEED, profile)
    try:
        eager, golden = reference.eager(draw), reference.golden(draw)
    except ProblemError as exc:
        if profile == "shipped":
            raise
        return f"the reference does not accept such values ({exc})"
    if profile == "shipped" and not all(bool(torch.isfinite(g).all()) for g in golden):
        raise ProblemError(
            "the reference's output on its own inputs should be finite, got Inf or NaN; mend "
            "forward or get_inputs"
        )
    return unfit_reason(eager, golden)


def _trial_large(reference: ModelReference) -> str | None:
    reason = None
    for scale in inputs.LARGE_SCALES:
        reference.large_scale = scale
        reason = _trial(reference, "large")
        if reason is None:
            break
    return reason


def _trial_exact(reference: ModelReference) -> str | None:
    draw = reference.draw(TRIAL_SEED, "integers")
    pairs = zip(reference.eager(draw), reference.golden(draw), strict=True)
    if all(torch.equal(eager.double(), golden) for eager, golden in pairs):
        return None
    return "sums of integers are not exact in the output's dtype"
