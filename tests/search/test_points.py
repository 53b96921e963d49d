import random

from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.space import Dimension, Space
from hotloop.search.points import contains, draw_point, enumerate_points, neighbours, point_key
from hotloop.testing.fakes import SMALL_SPACE


@st.composite
def spaces(draw):
    dimensions = []
    for number in range(draw(st.integers(0, 4))):
        choices = draw(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True))
        when = {}
        if dimensions and draw(st.booleans()):
            earlier = draw(st.sampled_from(dimensions))
            when = {earlier.name: (draw(st.sampled_from(earlier.choices)),)}
        dimensions.append(
            Dimension(
                name=f"d{number}", choices=tuple(choices), when=when, ordered=draw(st.booleans())
            )
        )
    return Space(dimensions=tuple(dimensions))


@given(spaces(), st.integers(0, 1000))
def test_enumeration_draws_and_neighbours_agree(space, seed):
    points = {point_key(p): p for p in enumerate_points(space)}
    drawn = draw_point(space, random.Random(seed))
    assert point_key(drawn) in points
    assert contains(space, drawn)
    for near in neighbours(space, drawn):
        assert point_key(near) in points
        assert point_key(near) != point_key(drawn)


def test_enumeration_lists_each_point_once():
    keys = [point_key(p) for p in enumerate_points(SMALL_SPACE)]
    assert len(keys) == len(set(keys)) == 48


def test_ordered_dimensions_move_one_step():
    here = SMALL_SPACE.complete({"BLOCK": 16, "num_warps": 2})
    blocks = {p["BLOCK"] for p in neighbours(SMALL_SPACE, here)}
    warps = {p["num_warps"] for p in neighbours(SMALL_SPACE, here)}
    assert blocks == {16, 32}
    assert warps == {1, 2, 4}


def test_a_partial_or_foreign_point_is_not_of_the_space():
    whole = SMALL_SPACE.complete({})
    assert contains(SMALL_SPACE, whole)
    assert not contains(SMALL_SPACE, {"BLOCK": 16})
    assert not contains(SMALL_SPACE, {**whole, "parts": 2})
    assert not contains(SMALL_SPACE, {**whole, "BLOCK": 24})


def test_keys_tell_true_from_one():
    assert point_key({"a": True}) != point_key({"a": 1})
