"""Which shape the sanitizers get: small, ragged where the kernel must be right there."""

from types import SimpleNamespace

from hotloop.worker.sanitizer import LARGEST_BYTES, check_name, set_bytes, skip_all, telling_view
from hotloop.worker.sanitizer_tools import TOOLS


def view(n_bytes, sets=2):
    layout = SimpleNamespace(size_bytes=n_bytes * sets)
    return SimpleNamespace(board=SimpleNamespace(layout=layout, sets=[None] * sets))


def test_the_largest_of_the_small_shapes_is_taken():
    nominal, tiny, small = view(1000 << 20), view(1 << 10), view(1 << 20)
    large = view(LARGEST_BYTES + 1)
    assert telling_view(nominal, [tiny, small, large]) is small


def test_without_a_small_shape_that_must_be_right_the_problems_own_is_taken():
    nominal = view(1000 << 20)
    assert telling_view(nominal, []) is nominal
    assert telling_view(nominal, [view(LARGEST_BYTES + 1)]) is nominal


def test_one_call_counts_not_all_sets():
    assert set_bytes(view(4096, sets=16)) == 4096


def test_every_tool_is_a_check():
    assert set(skip_all("why")) == {check_name(tool) for tool in TOOLS}
