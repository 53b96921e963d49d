"""Values that leave for the host are counted; arithmetic on tensors and a few values are not."""

import io
import sys
from contextlib import suppress
from functools import partial
from tempfile import TemporaryFile

import numpy as np
import pytest
import torch
from torch.utils import dlpack

from hotloop.worker.beside_kernels import refused
from hotloop.worker.fingerprint import Fingerprint
from hotloop.worker.host_reads import (
    FOREIGN,
    GONE,
    HOST_READS,
    PRINTED,
    HostReads,
    wrap_capsules,
)
from hotloop.worker.library_calls import LibraryCalls


def counted(work, *, paused=False):
    reads = HostReads(lambda: paused)
    x = torch.rand(4, 5)
    with reads:
        work(x)
    return reads.read


def split_at(x, split):
    places = x.view(torch.int32).flatten().long() + 2**31
    return split(torch.empty(2**32, device="meta"), places)


@pytest.mark.parametrize(
    ("work", "n"),
    [
        (lambda x: x.tolist(), 20),
        (lambda x: x.numpy(), 20),
        (lambda x: [[float(v) for v in row] for row in x], 20),
        (lambda x: x[0].tolist() + x[1].tolist(), 10),
        (lambda x: x[0, 0].item(), 1),
        (lambda x: (x * 2).sum(dim=1).to(torch.float64), 0),
        (lambda x: x.to("cpu"), 0),  # it lies there
        (lambda x: [part.storage_offset() for part in split_at(x, torch.tensor_split)], 20),
        (lambda x: split_at(x, torch.Tensor.tensor_split), 20),
        (lambda x: split_at(x, torch.ops.aten.tensor_split.tensor_indices_or_sections), 20),
        (lambda x: x.tensor_split(2), 0),
        (lambda x: x.tensor_split([1, 3]), 0),
    ],
)
def test_values_handed_to_the_host_are_counted(work, n):
    assert sum(counted(work).values()) == n


def in_a_callback(x):
    z = torch.zeros(1, 1)
    torch.nn.functional.triplet_margin_with_distance_loss(
        z, z, z, distance_function=lambda a, b: torch.zeros(1) + float(x.numpy().sum())
    )


class Wrapped:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **named):
        return dlpack.to_dlpack(self.x)

    def __dlpack_device__(self):
        return (1, 0)


@pytest.fixture
def capsules(monkeypatch):
    for owner in (torch, torch._C, dlpack):
        for name in ("to_dlpack", "_to_dlpack", "_to_dlpack_versioned"):
            if hasattr(owner, name):
                monkeypatch.setattr(owner, name, getattr(owner, name))
    wrap_capsules()


@pytest.mark.parametrize(
    "work",
    [
        in_a_callback,
        lambda x: np.asarray(x),
        lambda x: np.from_dlpack(x),
        lambda x: np.from_dlpack(Wrapped(x)),
        lambda x: x.clone().apply_(lambda v: 2 * v),
        lambda x: x.clone().map_(x, lambda a, b: a + b),
        lambda x: bytes(x.clone().untyped_storage()),
        lambda x: torch.save(x, io.BytesIO()),
        lambda x: torch._C.TensorBase.numpy(x),
    ],
)
def test_ways_past_the_methods_are_counted(capsules, work):
    assert sum(counted(work).values()) >= 20


@pytest.mark.parametrize(
    "work",
    [
        lambda x: x.untyped_storage().data_ptr() + x.untyped_storage().nbytes(),
        lambda x: f"{x} {x.shape} {x.sum()}",
        lambda x: f"{x.expand(1000, 4, 5)}",
        lambda x: (x.clone() * 2).softmax(dim=1),
    ],
)
def test_addresses_sizes_and_summaries_are_not(work):
    assert sum(counted(work).values()) <= 1


def test_text_of_many_values_is_counted():
    y = torch.rand(PRINTED // 2 + 1000 // 2)
    with HostReads(lambda: False) as reads:
        for part in y.split(500):
            repr(part)
            str(part)
    assert reads.read == {"print": 2 * y.numel() - PRINTED}


def test_a_hook_that_is_taken_away_is_told():
    with HostReads(lambda: False) as reads:
        sys.setprofile(None)
    assert reads.read.keys() == {GONE}
    assert sys.getprofile() is None


def test_the_hook_rests_inside_a_kernel():
    seen = []
    with HostReads(lambda: False) as reads:
        before = reads.apart_from(lambda tensors: lambda: seen.append(sys.getprofile()))
        after = before([])
        seen.append(sys.getprofile())
        after()
        assert sys.getprofile() is not None
    assert seen == [None, None]
    assert reads.read == {}


def test_single_values_are_counted_by_the_dispatcher_and_the_watchs_own_are_not():
    x = torch.rand(4, 5)
    calls = LibraryCalls([x], range(0))
    with HostReads(lambda: calls.is_in_kernel or calls.is_noting) as reads, calls:
        y = x.exp() + 1  # whose values the watch reads
        assert bool(y[0, 0] > 0)
        assert float(y[1, 1]) > 0
    assert calls.host_reads == {"_local_scalar_dense": 2}
    assert reads.read == {"__float__": 1}


def test_what_the_watch_reads_is_not_counted_and_what_others_read_meanwhile_is():
    assert counted(Fingerprint.of, paused=True) == {}
    assert counted(Fingerprint.of) != {}
    assert counted(lambda x: x.tolist(), paused=True) == {"tolist": 20}


def by_a_swap(x):
    """Read a tensor in another's place, once the hook has seen that one read."""
    t = torch.zeros(1)
    t.numpy()
    t.data = x
    list(map(torch.Tensor.numpy, [t]))


def in_a_print(x):
    class Digits(int):
        def __format__(self, spec):
            x.numpy()
            return "4"

        __str__ = __format__

    torch.set_printoptions(precision=Digits(4))
    try:
        repr(torch.zeros(2) + 0.5)
    finally:
        torch.set_printoptions(precision=4)


def in_a_read(x):
    def look(value):
        x.numpy()
        return value

    torch.zeros(1).apply_(look)


def in_a_read_without_a_frame(x):
    b = np.empty((4, 5), np.float32)
    with suppress(TypeError):  # it wants a number, and has `b` filled by then
        torch.zeros(1).apply_(partial(np.add, x, out=b))


def into_a_file(x):
    with TemporaryFile() as file:
        x.untyped_storage()._write_file(file, False, False, 4)


@pytest.mark.parametrize(
    "work", [by_a_swap, in_a_print, in_a_read, in_a_read_without_a_frame, into_a_file]
)
def test_reads_behind_other_reads_are_counted(work):
    assert sum(counted(work).values()) >= 20


@pytest.mark.parametrize(
    ("write", "n"),
    [
        (lambda x: torch.from_numpy(np.empty((4, 5), np.float32)).copy_(x), 20),
        (lambda x: torch.exp(x, out=torch.from_numpy(np.empty((4, 5), np.float32))), 20),
        (lambda x: torch.frombuffer(bytearray(80), dtype=torch.float32).add_(x.view(-1)), 20),
        (lambda x: torch.frombuffer(bytearray(80), dtype=torch.float32)[:2].copy_(x[0, :2]), 2),
        (lambda x: torch.from_numpy(np.ones((4, 5), np.float32)) * x, 0),
        (lambda x: torch.empty_like(x).copy_(x), 0),
        (lambda x: torch.from_dlpack(torch.empty_like(x)).copy_(x), 0),  # torch's own memory
        (lambda x: x.untyped_storage().data_ptr(), 0),
    ],
)
def test_what_is_written_where_numpy_reads_is_counted(write, n):
    x = torch.rand(4, 5)
    calls = LibraryCalls([x], range(0))
    with calls:
        write(x)
    assert calls.host_reads == ({FOREIGN: n} if n else {})
    assert FOREIGN in HOST_READS


def test_what_a_kernel_writes_where_numpy_reads_is_counted():
    x, raw = torch.rand(4, 5), np.zeros((4, 5), np.float32)
    for target, n in ((torch.from_numpy(raw), 20), (torch.empty(4, 5), 0)):
        calls = LibraryCalls([x], range(0))
        with calls:
            after = calls.before_launch([x, target])
            with torch._C._DisableTorchDispatch():
                target.copy_(x)
            after()
        assert calls.host_reads == ({FOREIGN: n} if n else {})


@pytest.mark.parametrize(
    ("operations", "policy", "census", "expected"),
    [
        ({"tolist": 100}, "anchored", {"mm"}, "tolist"),
        ({"tolist": 10}, "anchored", {"mm"}, None),
        ({"amax": 100}, "anchored", {"amax", "exp"}, "amax"),
        ({"sum": 10}, "anchored", {"sum"}, None),  # what kernels left to add
        ({"amax": 100, "mm": 100}, "anchored", {"mm", "amax"}, None),
        ({"mm": 100}, "none", set(), "mm"),
        ({"zeros": 100, "copy": 100}, "anchored", {"sum"}, None),
    ],
)
def test_what_may_stand_beside_a_kernel(operations, policy, census, expected):
    assert refused(operations, policy, frozenset(census), 100) == expected
