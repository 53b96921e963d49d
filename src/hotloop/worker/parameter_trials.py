"""Parameters on trial: which values of its parameters a reference bears in a value profile.

Each begins with what shows most, signs and sizes as a trained model may have them, and falls back
to the values that the profile had without: no profile is lost for its parameters.

Not here: how values are tried (`trials.py`), which values these are (`constants.py`,
`parameters.py`), weights that have to be positive (`far_sides.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotloop.worker import constant_inputs
from hotloop.worker.input_reach import KEEPS_INPUTS
from hotloop.worker.kept_inputs import varied_places
from hotloop.worker.value_profiles import LARGEST_FRAC

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference
    from hotloop.worker.trials import Trials

NOTHING_NEW = "no input or parameter takes other values than the file's"


def with_constants(trials: Trials, profile: str) -> str | None:
    """Try other values in what begins constant, as wild as the reference bears; why none, or None.

    First without their signs, then without those of buffers: a table of zeros may be needed as it
    is.
    """
    reference = trials.reference
    reach = reference.reach
    usual, first = list(trials.usual), None
    for has_buffers in (True, False) if reach.buffers else (True,):
        for is_wide in (True, False) if reference.constant_names else (True,):
            reach.has_buffers = has_buffers
            (reach.wide.add if is_wide else reach.wide.discard)(profile)
            trials.usual = list(usual)
            reason = trials.plain(profile)
            if reason is None:
                if not is_wide:
                    reference.note(
                        f"value profile {profile!r} leaves scales their sign and size: {first}"
                    )
                constant_inputs.vary(trials, profile)
                return None if _is_new(reference, profile) else NOTHING_NEW
            first = first or reason
    return reason


def large_constants(trials: Trials, factor: float) -> None:
    """Let `large` have other constants too, where eager is at most `factor` times as far off."""
    reference, before = trials.reference, trials.errors
    if not reference.constant_names:
        return
    reference.reach.wide.add("large")
    if trials.plain("large", below=LARGEST_FRAC) is not None or trials.is_worse(before, factor):
        reference.reach.wide.discard("large")


def _is_new(reference: ModelReference, profile: str) -> bool:
    """Whether anything has other values than `shipped` gives it."""
    if reference.constant_names or reference.reach.varied.get(profile):
        return True
    writes = bool(varied_places(reference) or reference.reach.tables)
    return writes and profile not in KEEPS_INPUTS
