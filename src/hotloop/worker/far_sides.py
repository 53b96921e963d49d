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
from hotloop.worker.reductions import Reductions, has_minimum, reductions
from hotloop.worker.value_profiles import LARGEST_FRAC

if TYPE_CHECKING:
    from hotloop.worker.draw import Draw
    from hotloop.worker.model_reference import ModelReference
    from hotloop.worker.trials import Trials

ORDER = (Rigour.FULL, Rigour.ROUGH, Rigour.GROSS)
"""From the strictest rules on."""
TRIAL_SEED = 3


def far_reason(trials: Trials) -> str | None:
    """Choose the sides of `far`; return why it cannot judge candidates, or None.

    Weights that products take without a bias are positive where extrema behind products show only
    then: rows that are all negative are negative in every channel, as a bias of that size makes
    them.
    """
    reference = trials.reference
    reach, census = reference.reach, reference.census
    usual = Sides(below=has_maximum(census))
    reach.sides = usual
    reason = trials.plain("far", below=LARGEST_FRAC)
    if reason is not None or not (has_maximum(census) or has_minimum(census)):
        return reason
    rules, notes = reach.rules["far"], list(reference.notes)
    shown = {usual: _shown(reference, trials.seen)}
    for is_positive in (False, True) if reach.unbiased_weights else (False,):
        reach.positive_weights = is_positive
        _look(reference, shown)
        best = max(shown, key=lambda form: shown[form])  # the first of those that show most
        for form in dict.fromkeys((best, usual)):
            reach.sides = form
            if not shown[form]:
                continue
            if form == usual and not is_positive:  # it has been tried
                return None
            reason = trials.plain("far", below=LARGEST_FRAC)
            if reason is None and as_strict(reach.rules["far"], rules):
                return None
            reach.rules["far"], reference.notes[:] = rules, notes
        shown = {}
    reach.sides, reach.positive_weights = usual, False
    return None


def _look(reference: ModelReference, shown: dict[Sides, int]) -> None:
    """Run the forms until one shows all; note at how many kinds of extrema each shows."""
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
    draw: Draw | None = None
    for form in forms:
        if form not in shown:
            reach.sides = form
            if draw is None or reach.tables:  # these are drawn with the parameters
                draw = reference.draw(TRIAL_SEED, "far")
            else:
                reference.redraw_inputs(draw, TRIAL_SEED)
            try:
                shown[form] = _shown(reference, reductions(reference, draw))
            except ProblemError:
                shown[form] = 0
        if shown[form] == below + above:
            return


def _shown(reference: ModelReference, seen: Reductions) -> int:
    """Return at how many kinds shows what an extremum begins at: maxima, minima."""
    below, above = has_maximum(reference.census), has_minimum(reference.census)
    return (below and seen.goes_below) + (above and seen.goes_above)


def as_strict(rules: tuple[Rigour, ...], known: tuple[Rigour, ...]) -> bool:
    """Return whether no output has fewer rules than it is known to have."""
    pairs = zip(rules, known, strict=True)
    return all(ORDER.index(a) <= ORDER.index(b) for a, b in pairs)
