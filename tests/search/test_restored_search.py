"""A search that goes on after a crash proposes what it would have proposed without one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.space import Space
from hotloop.search.hybrid import HybridStrategy
from hotloop.search.refine import RefineStrategy
from hotloop.search.sample import SampleStrategy
from hotloop.testing.scripted_search import ScriptedSearch, by_chance


@pytest.mark.parametrize("strategy_class", [HybridStrategy, RefineStrategy, SampleStrategy])
@given(
    world=st.tuples(st.integers(0, 10**6), st.floats(0.0, 1.0)),
    options=st.fixed_dictionaries({"width": st.integers(1, 6), "has_start": st.booleans()}),
    orders=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
    steps=st.integers(0, 70),
)
@settings(max_examples=40, deadline=None)
def test_restored_goes_on_like_live(strategy_class, world, options, orders, steps):
    def session():
        strategy = strategy_class(Space(dimensions=()), 3, **options)
        return ScriptedSearch(strategy=strategy, script=by_chance(*world))

    live = session()
    live.play(orders[0], steps)
    restored = session()
    restored.attempts, restored.now_s = dict(live.attempts), live.now_s
    restored.strategy.restore(sorted(live.attempts.values(), key=lambda a: -a.id))
    assert restored.play(orders[1], 40) == live.play(orders[1], 40)
