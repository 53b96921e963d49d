"""Values that leave for the host are counted; arithmetic on tensors and a few values are not."""

import pytest
import torch

from hotloop.worker.conduct import _refused
from hotloop.worker.host_reads import HostReads


def counted(work, *, paused=False):
    reads = HostReads(lambda: paused)
    x = torch.rand(4, 5)
    with reads:
        work(x)
    return reads.read


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
    ],
)
def test_values_handed_to_the_host_are_counted(work, n):
    assert sum(counted(work).values()) == n


def test_nothing_is_counted_inside_a_kernel():
    assert counted(lambda x: x.tolist(), paused=True) == {}


@pytest.mark.parametrize(
    ("operations", "policy", "census", "refused"),
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
def test_what_may_stand_beside_a_kernel(operations, policy, census, refused):
    assert _refused(operations, policy, frozenset(census), 100) == refused
