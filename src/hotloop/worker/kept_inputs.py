"""Kept inputs: those for the sake of which a value profile would be lost for all others.

Of a prior under a logarithm, or a variance under a root, negative numbers have no result. That says
nothing of the scores beside it. So where the reference raises, or gives NaN or Inf that it did not
have, inputs are varied one at a time, then all those together that it bears; the others keep the
file's own values, or lose their signs. What one profile needs is tried first in the next.

A trial is one run of eager on inputs that are drawn again in place. There are at most `RUNS` of
them in the search for a reference, counted and not timed, so that the same problem has the same
profiles. Looking for a seed on which a profile breaks down takes up to `FINAL_SEEDS` more for each.

Not here: how a profile is tried once it is known what is kept (`trials.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hotloop.errors import ProblemError
from hotloop.worker.draw import broken_reason
from hotloop.worker.input_reach import KEEPS_INPUTS
from hotloop.worker.memory import ran_out, release_memory
from hotloop.worker.opposed import SCALES
from hotloop.worker.random_sources import FORMS, FREE

if TYPE_CHECKING:
    from hotloop.worker.draw import Draw
    from hotloop.worker.model_reference import ModelReference

RUNS = 32
"""Of eager, for one reference: ten inputs take 11 for a profile and one for each later one."""
TRIAL_SEED = 3
FEW, FEW_SEEDS = 8, 4
"""An input of so few numbers may be positive by luck: other seeds are looked at, too."""
FINAL_SEEDS = 8
"""So many are looked at for a profile of the final tier that failed on a secret one."""
Places = frozenset[int]


@dataclass(slots=True)
class KeptInputs:
    """Looks for the inputs that a profile can vary where it cannot vary all."""

    reference: ModelReference
    found: list[Places] = field(default_factory=list)
    """What other profiles could vary."""
    runs: int = 0

    def find(self, profile: str, table: dict[str, Places], seed: int = TRIAL_SEED) -> bool:
        """Enter into the table what a profile has to keep; return whether it can vary anything.

        Args:
            profile: the value profile, which failed with all inputs varied.
            table: the reach's `kept` or `unsigned_inputs`.
            seed: one that it failed on.
        """
        places = self._places(profile)
        if not places:
            return False
        try:
            varied = self._largest(self.reference.draw(seed, profile), table, places)
        except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
            if not ran_out(exc):
                raise
            varied = None
            release_memory()
        table.pop(profile, None)
        if varied is None:
            return False
        table[profile] = places - varied
        if varied not in self.found:
            self.found.insert(0, varied)
        return True

    def keep_at_last(self, profile: str) -> str | None:
        """Find what a profile of the final tier has to keep, once; return a note of it, or None.

        Args:
            profile: one that could not judge candidates with all inputs varied.
        """
        kept = self.reference.reach.kept
        seed = None if profile in kept else self._broken_seed(profile, FINAL_SEEDS)
        if seed is None or not self.find(profile, kept, seed):
            kept.setdefault(profile, frozenset())  # not looked for again
            return None
        return "; ".join(tell(self.reference, (profile,)))

    def broken_by_luck(self, profile: str) -> int | None:
        """Return a seed on which a profile that was admitted breaks down, or None.

        Looked for where an input has few numbers: one under a root is positive on every other seed.
        """
        return self._broken_seed(profile, FEW_SEEDS) if has_few(self.reference) else None

    def _broken_seed(self, profile: str, count: int) -> int | None:
        seeds = range(TRIAL_SEED, TRIAL_SEED + count) if self._places(profile) else ()
        for seed in seeds:  # each draw is let go of before the next is made
            if not _is_borne(self.reference, self.reference.draw(seed, profile)):
                return seed
        return None

    def _places(self, profile: str) -> Places:
        """Return the places of what a profile varies; none where nothing else would be left."""
        places = varied_places(self.reference)
        keeps = profile in KEEPS_INPUTS or profile == "integers"
        return frozenset() if keeps or len(places) < 2 else places

    def _largest(self, draw: Draw, table: dict[str, Places], places: Places) -> Places | None:
        """Return the largest set that the reference bears varied, as far as it is looked for."""
        profile = draw.profile

        def bears(varied: Places) -> bool:
            if self.runs >= RUNS or not varied < places:
                return False
            self.runs += 1
            table[profile] = places - varied
            return _is_borne(self.reference, draw)

        for varied in self.found:
            if self._tells(profile, varied) and bears(varied):
                return varied
        singly = [unit for unit in self._units(profile, places) if bears(unit)]
        if not singly:
            return None
        largest = frozenset().union(*singly)
        if len(singly) == 1 or bears(largest):
            return largest
        largest = singly[0]
        for unit in singly[1:]:
            if bears(largest | unit):
                largest |= unit
        return largest

    def _units(self, profile: str, places: Places) -> list[Places]:
        """Return what has to be varied together to show what a profile is there for."""
        reach = self.reference.reach
        if profile in SCALES:
            return [reach.opposed_inputs]
        if profile == "alike":
            return [frozenset(group) for group in reach.alike]
        return [frozenset({place}) for place in sorted(places)]

    def _tells(self, profile: str, varied: Places) -> bool:
        """Whether a profile shows what it is there for where these are varied alone."""
        reach = self.reference.reach
        if profile == "alike":
            return any(len(varied.intersection(group)) > 1 for group in reach.alike)
        return profile not in SCALES or reach.opposed_inputs <= varied


def varied_places(reference: ModelReference) -> Places:
    """Return the places of the inputs that value profiles write to."""
    return frozenset(i for i, law in enumerate(reference.sources) if law in FREE or law in FORMS)


def has_few(reference: ModelReference) -> bool:
    """Whether an input has so few numbers that what holds on one seed may be luck."""
    return any(math.prod(spec.shape) <= FEW for spec in reference.specs()[0])


def tell(reference: ModelReference, profiles: Iterable[str]) -> tuple[str, ...]:
    """Note what these profiles leave as it is in which inputs; return the new lines, a set each."""
    reach = reference.reach
    told: dict[tuple[str, Places], list[str]] = {}
    for profile in profiles:
        for words, table in (
            ("keep the file's own values", reach.kept),
            ("have no signs", reach.unsigned_inputs),
        ):
            if table.get(profile):
                told.setdefault((words, table[profile]), []).append(repr(profile))
    lines = tuple(
        f"inputs {', '.join(reach.input_names[i] for i in sorted(places))} {words} in value "
        f"profiles {', '.join(names)}: for others the reference has no finite result"
        for (words, places), names in told.items()
    )
    for line in lines:
        reference.note(line)
    return lines


def _is_borne(reference: ModelReference, draw: Draw) -> bool:
    """Run eager on a draw with its inputs drawn again; return whether its results are finite."""
    reference.redraw_inputs(draw, draw.seed)
    try:
        outputs = reference.eager(draw)
    except ProblemError as exc:
        return ran_out(exc)  # which says nothing of the values
    return broken_reason(outputs, outputs, nonfinite=reference.nonfinite) is None
