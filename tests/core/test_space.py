"""A space completes points, and refuses what is not in it."""

import pytest

from hotloop.core.space import Dimension, Space

SPACE = Space(
    dimensions=(
        Dimension(name="tile", choices=(64, 128), ordered=True),
        Dimension(name="loads", choices=("tma", "pointer")),
        Dimension(name="depth", choices=(2, 3), when={"loads": ("pointer",)}),
    )
)


def test_defaults_are_filled_in_and_absent_dimensions_left_out():
    assert SPACE.complete({}) == {"tile": 64, "loads": "tma"}
    assert SPACE.complete({"loads": "pointer"}) == {"tile": 64, "loads": "pointer", "depth": 2}
    assert SPACE.complete({"loads": "tma", "depth": 3}) == {"tile": 64, "loads": "tma"}


@pytest.mark.parametrize(("point", "why"), [({"size": 1}, "unknown"), ({"tile": 65}, "not one of")])
def test_what_is_not_in_the_space_is_refused(point, why):
    with pytest.raises(ValueError, match=why):
        SPACE.complete(point)
