from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.attempt import Action
from hotloop.core.record import dumps
from hotloop.core.space import Dimension, Space
from hotloop.core.verdict import Status
from hotloop.search.lineage import Lineage
from hotloop.search.sweep import POINTS_PER_SOURCE, SWEPT_SOURCES, next_sweep
from hotloop.testing.scripted_search import TUNABLES, ended

WIDE = Space(
    dimensions=tuple(
        Dimension(name=f"d{i}", choices=tuple(range(10)), ordered=True) for i in range(8)
    )
)
"""10^8 points."""


def lineage_of(*objectives, declared=TUNABLES):
    lineage = Lineage()
    for objective in objectives:
        lineage.tell(ended(lineage.propose(Action.DRAFT), objective, declared))
    return lineage


def sweep_all(lineage, seed=0, objective_of=lambda point: 9.0, limit=1000):
    """Sweep until nothing is left, each told at once; return (source id, point) of each."""
    swept = []
    while len(swept) < limit and (sweep := next_sweep(lineage, seed)) is not None:
        proposal = lineage.propose(Action.SWEEP, sweep.source, sweep.point)
        lineage.tell(ended(proposal, objective_of(sweep.point)))
        swept.append((sweep.source.id, sweep.point))
    return swept


def test_the_best_kernel_comes_first_and_every_other_point_of_it_once():
    swept = sweep_all(lineage_of(2.0, 1.0))
    assert [source for source, _ in swept] == [2] * 5 + [1] * 5
    points = [point for _, point in swept[:5]]
    assert {"BLOCK": 64, "num_warps": 4} not in points
    assert len({dumps(point) for point in points}) == 5


def test_neighbours_of_the_best_known_point_come_first():
    lineage = lineage_of(1.0, declared=WIDE)
    swept = [p for _, p in sweep_all(lineage, objective_of=lambda p: 1.0 - 0.01 * p["d0"], limit=8)]
    assert [point["d0"] for point in swept] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(sum(point.values()) == point["d0"] for point in swept)


def test_a_wide_space_is_cut_off():
    assert len(sweep_all(lineage_of(1.0, declared=WIDE))) == POINTS_PER_SOURCE


def test_only_the_best_sources_are_swept():
    swept = sweep_all(lineage_of(*range(1, 12)))
    assert {source for source, _ in swept} == set(range(1, SWEPT_SOURCES + 1))


def test_the_same_source_is_swept_once():
    lineage = lineage_of(1.0)
    again = ended(lineage.propose(Action.DRAFT), 1.0, TUNABLES)
    same = replace(again.verdict, candidate_id=lineage.stations[0].source_id)
    lineage.tell(replace(again, verdict=same))
    assert {source for source, _ in sweep_all(lineage)} == {1}


def test_a_kernel_that_failed_or_declares_nothing_is_not_swept():
    assert next_sweep(lineage_of(Status.TIMEOUT), 0) is None
    assert next_sweep(lineage_of(1.0, declared=None), 0) is None
    assert next_sweep(lineage_of(1.0, declared=Space(dimensions=())), 0) is None


def test_the_seed_decides_the_order_of_what_is_no_neighbour():
    draw = [
        dumps([p for _, p in sweep_all(lineage_of(1.0, declared=WIDE), seed)]) for seed in (1, 2, 1)
    ]
    assert draw[0] == draw[2] != draw[1]


@given(st.integers(0, 99), st.lists(st.floats(0.1, 2.0), min_size=1, max_size=5))
def test_every_sweep_is_a_new_point(seed, objectives):
    swept = sweep_all(lineage_of(*objectives), seed, objective_of=lambda p: p["BLOCK"] / 64)
    keys = [(source, dumps(point)) for source, point in swept]
    assert len(keys) == len(set(keys)) == 5 * len(objectives)
