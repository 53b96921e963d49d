from hotloop.core.attempt import Action
from hotloop.search.lineage import SWEEP_IDS, Lineage
from hotloop.search.progress import progress
from hotloop.testing.scripted_search import ended


def line_of(*entries):
    """Return the progress of a draft at 1.0 and of (action, parent's place, objective) after it."""
    lineage = Lineage()
    lineage.tell(ended(lineage.propose(Action.DRAFT), 1.0))
    for action, parent, objective in entries:
        station = lineage.concluded[parent - 1]
        lineage.tell(ended(lineage.propose(action, station), objective))
    return progress(lineage.concluded)


def test_other_values_in_the_leading_source_end_no_plateau():
    line = line_of((Action.OPTIMISE, 1, 2.0), (Action.SWEEP, 1, 0.5), (Action.OPTIMISE, 3, 0.9))
    assert line.best is not None
    assert (line.best.id, line.stale) == (SWEEP_IDS, 2)


def test_a_source_that_takes_the_lead_by_its_values_ends_a_plateau():
    line = line_of((Action.OPTIMISE, 1, 2.0), (Action.SWEEP, 2, 0.5))
    assert line.best is not None
    assert (line.best.id, line.stale, line.led_since) == (SWEEP_IDS, 0, 2)


def test_small_gains_add_up():
    line = line_of(*[(Action.OPTIMISE, number, 1.0 - 0.004 * number) for number in range(1, 4)])
    assert line.best is not None
    assert (line.best.id, line.stale) == (4, 0)
