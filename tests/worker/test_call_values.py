"""Which operations take values of the call: of its inputs, and of what kernels wrote."""

import pytest
import torch

from hotloop.worker.arena import Arena, Layout
from hotloop.worker.library_calls import LibraryCalls

Q = torch.randn(16, 32, generator=torch.Generator().manual_seed(0))
GIVEN = (Q, 2 * Q, torch.rand(8), torch.arange(512).view(16, 32))
"""As an attention's: q, k, slopes and indices."""


def watched(work):
    """Return what ran on values, and how many those are, where a forward is given `GIVEN`."""
    layout = Layout()
    slots = [layout.place_like(t) for t in GIVEN]
    arena = Arena.create("cpu", layout.size_bytes)
    inputs = [arena.view(slot) for slot in slots]
    for tensor, value in zip(inputs, GIVEN, strict=True):
        tensor.copy_(value)
    start = arena.bytes.data_ptr()
    calls = LibraryCalls([Q], range(start, start + arena.bytes.numel()))
    calls.slots = {t.data_ptr(): t for t in inputs}
    with calls:
        output = work(calls, *inputs)
    return calls.on_values([output]), calls.values.applied


def by_a_kernel(calls, source, *, factor=1.0):
    target = torch.empty_like(source)
    after = calls.before_launch([source, target])
    with torch._C._DisableTorchDispatch():  # a kernel, which no mode sees
        torch.mul(source, factor, out=target)
    after()
    return target


def in_a_part(calls, q, *others):
    held = torch.zeros(2, 16, 32)
    held[1] = q
    return held * 2


def joined(calls, q, k, *others):
    parts = by_a_kernel(calls, torch.stack([q, k]), factor=3.0)
    return (parts * torch.tensor([[[0.5]], [[0.25]]])).sum(0)


@pytest.mark.parametrize(
    ("work", "expected", "applied"),
    [
        (lambda calls, q, k, *_: q * k, {"mul": 512}, 1024),
        (lambda calls, q, *_: (q * 2).exp(), {"mul": 512, "exp": 512}, 512),
        (lambda calls, q, *_: q.view(torch.int32).bitwise_and(-2), {"bitwise_and": 512}, 512),
        (lambda calls, q, *_: q.clone().t().contiguous() + 1, {"add": 512}, 512),
        (lambda calls, q, *_: torch.where(q > 0, 1.0, 0.0), {"gt": 512, "where": 512}, 512),
        (lambda calls, q, *_: q.double().mul_(3), {"mul": 512}, 512),
        (in_a_part, {"mul": 1024}, 512),
        (lambda calls, q, *_: by_a_kernel(calls, q) * 2, {"mul": 512}, 512),
        (joined, {"mul": 1024, "sum": 1024}, 2048),
    ],
)
def test_values_of_inputs_and_kernels_are_followed(work, expected, applied):
    assert watched(work) == (expected, applied)


@pytest.mark.parametrize(
    "work",
    [
        lambda calls, q, k, slopes, at: slopes[:, None, None] * (at - 1)[None],
        lambda calls, q, k, slopes, at: torch.exp(torch.arange(9000.0)).sum(),
        lambda calls, q, k, slopes, at: torch.zeros_like(q) + 1,
        lambda calls, q, k, slopes, at: q.new_full((100, 100), 2.0).tril() * 3,
        lambda calls, q, k, slopes, at: ((at[:, None] >= at[None]) & (at > 3)).sum(0),
        lambda calls, q, k, slopes, at: (q * 2).zero_() + 1,
        lambda calls, q, k, slopes, at: q.clone(),
    ],
)
def test_tables_out_of_indices_and_small_inputs_hold_none(work):
    assert watched(work)[0] == {}


def test_what_kernels_write_again_and_again_is_counted_up_to_its_memory():
    def work(calls, q, *others):
        y = torch.empty_like(q)
        for _ in range(5):
            after = calls.before_launch([q, y])
            with torch._C._DisableTorchDispatch():
                y.copy_(q)
                y += 1
            after()
        return y * 2

    assert watched(work) == ({"mul": 512}, 512)
