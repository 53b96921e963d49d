"""Sides of far values: which parts are all negative or all positive, so that extrema show.

An extremum that begins at 0, or at the largest number of float16, is wrong only where all that it
is taken over lies beyond. A quarter of the first dimension does that for extrema along a later
one, a quarter of the columns for those over all rows. One over everything, or over a single row,
needs all of the tensor on one side. Each form is run and looked at (`reductions.py`), the first
that shows most is taken, as long as it loses no rule of the gate.

Where only a whole tensor shows and both a maximum and a minimum run, it is negative: beside what
`negative` finds of either, a softmax and a log-sum-exp that begin at 0 show there, and there is no
such operation with a minimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotloop.errors import ProblemError
from hotloop.worker.apart import Along, Sides
from hotloop.worker.bound import Rigour
from hotloop.worker.parameters import has_maximum
from hotloop.worker.reductions import has_minimum, reductions
from hotloop.worker.value_profiles import LARGEST_FRAC

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference
    from hotloop.worker.trials import Trials

ORDER = (Rigour.FULL, Rigour.ROUGH, Rigour.GROSS)
"""From the strictest rules on."""
TRIAL_SEED = 3


def far_reason(trials: Trials) -> str | None:
    """Choose the sides of `far`; return why it cannot judge candidates, or None."""
    reference = trials.reference
    reach, has = reference.reach, has_maximum(reference.census)
    usual = Sides(below=has)
    reach.sides = usual
    reason = trials.plain("far", below=LARGEST_FRAC)
    if reason is not None or not (has or has_minimum(reference.census)):
        return reason
    best = _showing(reference)
    if best == usual:
        reach.sides = usual
        return None
    rules, notes = reach.rules["far"], list(reference.notes)
    reach.sides = best
    if trials.plain("far", below=LARGEST_FRAC) is None and as_strict(reach.rules["far"], rules):
        return None
    reach.sides, reach.rules["far"] = usual, rules
    reference.notes[:] = notes
    return None


def _showing(reference: ModelReference) -> Sides:
    """Return the first of the forms that show most: maxima far below 0, minima far above."""
    reach, census = reference.reach, reference.census
    below, above = has_maximum(census), has_minimum(census)
    forms = (
        Sides(below=below),
        Sides(below=below, above=above),
        Sides(below=True, above=True),
        Sides(below=below, above=above, along=Along.COLUMNS),
        Sides(below=True, along=Along.WHOLE),
        Sides(above=True, along=Along.WHOLE),
    )
    reach.sides = forms[0]
    draw = reference.draw(TRIAL_SEED, "far")
    best, most = forms[0], 0
    for form in dict.fromkeys(forms):
        reach.sides = form
        reference.redraw_inputs(draw, TRIAL_SEED)
        if reach.tables:
            draw = reference.draw(TRIAL_SEED, "far")  # they are drawn with the parameters
        try:
            seen = reductions(reference, draw)
        except ProblemError:
            continue
        shown = (below and seen.goes_below) + (above and seen.goes_above)
        if shown > most:
            best, most = form, shown
        if most == below + above:
            break
    return best


def as_strict(rules: tuple[Rigour, ...], known: tuple[Rigour, ...]) -> bool:
    """Return whether no output has fewer rules than it is known to have."""
    pairs = zip(rules, known, strict=True)
    return all(ORDER.index(a) <= ORDER.index(b) for a, b in pairs)
