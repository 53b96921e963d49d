"""On a GPU all of the judge's tensors lie in one storage; each counts for itself all the same."""

import pytest
import torch

from hotloop.worker.arena import Arena, Layout
from hotloop.worker.library_calls import LibraryCalls

A = torch.randn(16, 32, generator=torch.Generator().manual_seed(0))


def as_on_a_gpu(size_bytes):
    """Return an arena whose slots are slices of one tensor."""
    return Arena(torch.zeros(size_bytes, dtype=torch.uint8), {}, object())


@pytest.fixture(params=["host", "device"])
def operations(request):
    """Return a function: the operations behind what a kernel is given, of inputs x, mask, y."""
    layout = Layout()
    slots = [layout.place_like(t) for t in (A, A > 0, A)]
    make = as_on_a_gpu if request.param == "device" else lambda n: Arena.create("cpu", n)
    arena = make(layout.size_bytes)
    inputs = [arena.view(slot) for slot in slots]
    for tensor, value in zip(inputs, (A, A > 0, 2 * A), strict=True):
        tensor.copy_(value)
    start = arena.bytes.data_ptr()

    def watched(work):
        calls = LibraryCalls([A], range(start, start + arena.bytes.numel()))
        calls.slots = {t.data_ptr(): t for t in inputs}
        with calls:
            made, out = work(*inputs), torch.empty_like(A)
            calls.before_launch([made, out])()
        return set(calls.used([made]))

    return watched


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (lambda x, mask, y: x * mask, "mul"),
        (lambda x, mask, y: x - y, "sub"),
        (lambda x, mask, y: torch.where(mask, x, y), "where"),
        (lambda x, mask, y: x[:, :16] + y[:, 16:], "add"),
    ],
)
def test_arithmetic_of_two_inputs_joins_no_parts(operations, work, name):
    assert operations(work) == {name}


@pytest.mark.parametrize(
    "work", [lambda x, mask, y: x[:, :16] + x[:, 16:], lambda x, mask, y: y[::2] + y[1::2]]
)
def test_places_of_one_input_that_are_put_together_are_parts(operations, work):
    assert operations(work) == {"add_of_parts"}


def test_what_is_written_into_one_slot_is_no_version_of_another():
    layout = Layout()
    first, second = (layout.place_like(A) for _ in range(2))
    arena = as_on_a_gpu(layout.size_bytes)
    x, y = arena.view(first), arena.view(second)
    before = x._version
    y.copy_(A)
    assert x._version == before
