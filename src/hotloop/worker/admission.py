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
        ProblemError: the reference fails on its own inputs, or no profile is left.
    """
    refused: dict[str, str] = {}
    profiles = applicable(reference)
    for profile in profiles:
        reason = _trial_of(reference, profile)
        if reason is not None:
            refused[profile] = reason
            reference.note(f"value profile {profile!r} left out: {reason}")
    kept = tuple(p for p in profiles if p not in refused)
    if not kept:
        raise ProblemError(
            "no values can tell a right result from a wrong one: "
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
    profiles = ("shipped", "normal", "positive_mean", "large")
    return (*profiles, "integers") if reference.census.multilinear and all(free) else profiles


def _trial_of(reference: ModelReference, profile: str) -> str | None:
    if profile == "integers":
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
