"""Repeats: what differs between calls that ought to be alike, because a forward tells them apart.

    bare calls beside watched ones       torch works on more, or fewer kernels are launched
    a call on values seen just before    fewer kernels are launched: results are kept

What differs counts where it differs again, on other values. A first call may tune and pack, so its
launches alone say nothing. Not covered: forwards that make up for launches that they leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hotloop.worker.call_rules import (
    FEWER,
    UNWATCHED,
    hack,
    launches_unwatched,
    works_unwatched,
)
from hotloop.worker.known_case import Known
from hotloop.worker.other_values import other_values
from hotloop.worker.untimed import WatchedCall

TRIES = 2
"""Draws on each of which a result must be kept to count."""
KEPT = (
    "forward launches fewer kernels where it is called again on the same values: it keeps results "
    "of earlier calls; compute them in each call"
)


@dataclass(slots=True)
class Repeats:
    """Calls on the inputs of one case."""

    known: Known
    watched: list[WatchedCall] = field(default_factory=list)
    bare: list[WatchedCall] = field(default_factory=list)

    def __len__(self) -> int:
        """Return how many there were."""
        return len(self.watched) + len(self.bare)

    def add(self, call: WatchedCall, *, bare: bool) -> None:
        """Add a call."""
        (self.bare if bare else self.watched).append(call)

    @property
    def difference(self) -> str | None:
        """How bare calls differ from watched ones, or None."""
        if works_unwatched(self.known, _works(self.watched), _works(self.bare)):
            return UNWATCHED
        if launches_unwatched(_launches(self.watched), _launches(self.bare)):
            return FEWER
        return None

    def check_alike(self) -> None:
        """Refuse a forward whose bare calls differ from its watched ones.

        Raises:
            Failed: they do.
        """
        if (text := self.difference) is not None:
            raise hack("library_call", text)

    def check_kept(self, first: WatchedCall, call: Callable[[Known], WatchedCall]) -> None:
        """Refuse a forward that keeps results for values that come again.

        Args:
            first: the first call on these inputs.
            call: makes a watched call on a case, at the address of the call before.

        Raises:
            Failed: on other values, too, the second call launches less than the first.
        """
        if first.launches <= min(_launches(self.watched), default=first.launches):
            return
        call(other_values(self.known))  # an address may be new, too, and want a buffer of its own
        for _ in range(TRIES):
            other = other_values(self.known)
            new = call(other).launches
            if call(other).launches >= new:
                return
        raise hack("kept_result", KEPT)


def _works(calls: Sequence[WatchedCall]) -> list[int]:
    return [call.work for call in calls]


def _launches(calls: Sequence[WatchedCall]) -> list[int]:
    return [call.launches for call in calls]
