"""Admission: which value profiles can judge candidates of a model reference.

A profile is left out, with a note, when the reference does not accept its values, when a result is
not finite, or when eager itself is far off the golden: then the gate would pass anything. Those of
the fast tier are tried here, when the problem is loaded; those that the final tier adds are tried
when a candidate gets there (`fresh_books.py`).

Not here: how one profile is tried, and how far its values go (`trials.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotloop.core.problem import NOTHING_TELLS
from hotloop.core.verdict import Tier
from hotloop.errors import ProblemError
from hotloop.worker import constant_inputs, kept_inputs
from hotloop.worker.alike import leaves_open
from hotloop.worker.bound import Rigour
from hotloop.worker.census import LIBRARY_PRODUCTS, VARIANCES
from hotloop.worker.random_sources import MASK
from hotloop.worker.trials import Trials
from hotloop.worker.value_profiles import MODEL_PROFILES, RANDOM_PARAMETERS, TIES, names

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference


def admitted(reference: ModelReference) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the profiles that apply, and those whose outputs must be exact.

    Raises:
        ProblemError: the reference fails on its own inputs, or no profile is left.
    """
    refused: dict[str, str] = {}
    trials = Trials(reference)
    profiles = tuple(p for p in applicable(reference) if reference.loaded.wants(p))
    for profile in profiles:
        reason = trials.of(profile)
        if reason is not None:
            refused[profile] = reason
            reference.note(f"value profile {profile!r} left out: {reason}")
    weak = {p for p, rules in reference.reach.rules.items() if set(rules) == {Rigour.GROSS}}
    kept = tuple(p for p in profiles if p not in refused)
    wanted = reference.loaded.wants("parameters") and _has_constants(reference)
    if wanted and not RANDOM_PARAMETERS & set(kept):
        reason = trials.of("parameters")
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
    kept_inputs.tell(reference, kept)
    for line in constant_inputs.unvaried(reference.reach):
        reference.note(line)
    return kept, frozenset(kept) & {"integers"}


def applicable(reference: ModelReference) -> tuple[str, ...]:
    """Return the profiles that make sense for the reference's inputs and operations."""
    free = [source not in (None, MASK) for source in reference.sources]
    if reference.census.asserts:
        reference.note(
            f"only the file's own values are used: {', '.join(reference.census.asserts)} accepts "
            "only a range of values"
        )
        return ("shipped",)
    if reference.reach.tables:
        reference.note(
            "the inputs are indices and keep the file's values; the tables that they look up get "
            "those of the value profiles"
        )
    elif not any(free):
        reference.note(
            "only the file's own inputs are used: get_inputs() does more with random values than "
            "scale, shift and reorder them, and forward might expect what it makes of them"
        )
        return ("shipped", "normal") if _has_constants(reference) else ("shipped",)
    biased = ("biased",) if reference.bias_rules is not None else ()
    opposed = ("opposed",) if reference.reach.opposed_weights else ()
    usual = ("shipped", "normal", "positive_mean", "negative", "large", "far")
    alike = ("alike",) if _wants_alike(reference) else ()
    profiles = (*usual, *opposed, *biased, *alike)
    return (*profiles, "integers") if reference.census.multilinear and all(free) else profiles


def _has_constants(reference: ModelReference) -> bool:
    """Whether parameters, buffers or inputs begin as constants that may have other values."""
    reach = reference.reach
    if reference.census.asserts:
        return bool(reference.constant_names)
    return bool(reference.constant_names or reach.uniform_inputs or reach.uniform_masks)


def _wants_alike(reference: ModelReference) -> bool:
    census = reference.census
    tells = not census.multilinear and not leaves_open(census.names)
    return bool(reference.reach.alike) and tells


def for_final(reference: ModelReference) -> tuple[str, ...]:
    """Return the profiles that the final tier adds where they make sense, not tried."""
    is_fixed = all(source in (None, MASK) for source in reference.sources)
    if reference.census.asserts or (is_fixed and not reference.reach.tables):
        return ()
    if "large" not in reference.profiles:
        reference.reach.scale = 1.0  # `sorted` takes it too
    # Of a variance of constant rows alone the golden is 0 everywhere, which judges nothing.
    names_run = reference.census.names
    reference.reach.varies_rows = bool(names_run & VARIANCES) and not names_run & LIBRARY_PRODUCTS
    profiles = names(MODEL_PROFILES, Tier.FINAL)
    if "opposed" not in reference.profiles:
        profiles = tuple(p for p in profiles if p != "lowered")
    _, outputs, _ = reference.specs()
    if all(spec.dtype.startswith(("float", "bfloat")) for spec in outputs):
        return profiles
    reference.note(
        "no values with ties at the final tier: which of equal elements an integer output names is "
        "left open"
    )
    return tuple(p for p in profiles if p not in TIES)
