"""Whether a stored run is the one that was asked for.

A run goes on only with the same problem, generator, strategy, device, language, seed, model, view
of the model, starting kernel, examples and held-out problems: anything else would mix two searches
in one journal. The budget may change between sessions.
"""

from __future__ import annotations

from hotloop.core.attempt import RunSpec
from hotloop.errors import ForeignRun
from hotloop.store.leases import KINDS

_FIXED = ("device", "generator", "strategy", "language", "seed")
_FIXED_OPTIONS = ("model", "sees", "start", "examples", "held_out")

RESERVED_KINDS = KINDS | {"begun", "continued", "proposed", "concluded", "spent"}
"""Event kinds that the journal writes itself; a note of such a kind is refused."""


def check_same_run(stored: RunSpec, asked: RunSpec, where: str) -> None:
    """Compare what is stored in `where` with what was asked for.

    Raises:
        ForeignRun: they are different runs; names the first difference.
    """
    if stored.problem_id != asked.problem_id:
        raise ForeignRun(
            f"{where} holds a run of {stored.problem_name} (problem {stored.problem_id}), not of "
            f"{asked.problem_name} (problem {asked.problem_id}); use another --out"
        )
    pairs = [(name, getattr(stored, name), getattr(asked, name)) for name in _FIXED]
    pairs += [(n, stored.options.get(n), asked.options.get(n)) for n in _FIXED_OPTIONS]
    for name, was, now in pairs:
        if was != now:
            raise ForeignRun(
                f"{where} was started with {name} {was!r}, now it is {now!r}; repeat the former "
                "or use another --out"
            )


def check_note_kind(kind: str) -> None:
    """Refuse a note that would pass for one of the journal's own events.

    Raises:
        ValueError: the kind is reserved.
    """
    if kind in RESERVED_KINDS:
        raise ValueError(f"a note cannot be of kind {kind!r}: the journal writes that itself")
