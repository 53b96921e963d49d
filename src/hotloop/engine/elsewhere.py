"""What the journal says of a judge elsewhere, whose verdicts are carried here by hand.

Asking such a judge takes no time of this machine. Its verifier notes what it was asked for
(`outside_wanted`) and what the other machine could not judge (`outside_error`); read here only.
"""

from __future__ import annotations

from hotloop.core.protocols import Store
from hotloop.core.verdict import Tier

WANTED = "outside_wanted"
ERROR = "outside_error"
"""Fields: `candidate_id`, and `tier` where it is known."""


def is_judged_elsewhere(store: Store) -> bool:
    """Whether this run has asked a judge elsewhere."""
    return bool(store.notes(WANTED))


def is_refused(store: Store, candidate_id: str, tier: Tier) -> bool:
    """Whether the other machine could not judge a candidate: its verdict may never come."""
    return any(
        note.get("candidate_id") == candidate_id and note.get("tier") in (None, tier.value)
        for note in store.notes(ERROR)
    )
