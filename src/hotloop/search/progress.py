"""How a line of attempts gets on: its best kernel, and how long nothing better was written.

Pure functions over concluded stations. Which line is looked at (a chain, or the whole run) is the
strategy's choice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hotloop.core.attempt import Action
from hotloop.search.lineage import Station

PLATEAU = 4
"""Optimise outcomes in a row without a new best after which small changes are given up. Published
searches leave a line after 3 to 5 stale turns."""

GAIN_FRAC = 0.01
"""A best that is better by less does not end a plateau: it may be the noise of one fast timing. A
margin by choice, half of what a final result needs to count as a win. Small gains add up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A line of attempts so far."""

    best: Station | None
    """The fastest correct attempt, sweeps included; of equals the first."""
    stale: int
    """Optimise outcomes since another source took the lead; calls that failed by themselves are
    none."""
    led_since: int
    """Place in the order at which the leading source took the lead; -1 while there is none."""

    @property
    def is_plateau(self) -> bool:
        """Whether small changes no longer help."""
        return self.stale >= PLATEAU


def progress(concluded: Iterable[Station], *, since: int = -1) -> Progress:
    """Return how a line gets on.

    Args:
        concluded: its attempts with a verdict, in the order in which they got it.
        since: stale outcomes up to this place in the order do not count.
    """
    best: Station | None = None
    leader: Station | None = None
    mark = float("inf")
    stale, led_since = 0, -1
    for station in concluded:
        is_turn = station.action is Action.OPTIMISE and not station.is_no_try
        if is_turn and (station.order or 0) > since:
            stale += 1
        if not station.passed:
            continue
        if best is None or station.objective < best.objective:
            best = station
        if leader is None or station.objective < mark * (1.0 - GAIN_FRAC):
            mark = station.objective
            # Other values in the leading source are no progress of the one who writes it.
            if leader is not station.author:
                leader, stale, led_since = station.author, 0, station.order or 0
    return Progress(best=best, stale=stale, led_since=led_since)
