"""Where an output lies and who put its values there: torch, or a kernel that did the moving."""

import pytest
import torch
from torch import library as operators

from hotloop.worker.library_calls import LibraryCalls
from hotloop.worker.own_operators import known_operators

X = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
SHARED = range(X.data_ptr(), X.data_ptr() + X.numel() * 4)  # as the judge's memory is
OLD = [torch.empty_like(X) for _ in range(2)]


def launch(calls, source, target, values):
    after = calls.before_launch([source, target])
    with torch._C._DisableTorchDispatch():  # a kernel, which no mode sees
        target.copy_(values)
    after()
    return target


def copied(calls, source):
    return launch(calls, source, torch.empty(source.shape), source)


def transposed_by_a_kernel(calls, source):
    return launch(calls, source, torch.empty(source.t().shape), source.t())


def watched(forward):
    calls = LibraryCalls([X.t().contiguous()], SHARED)
    with calls:
        output = forward(calls)
    return calls, output


BY_TORCH = {
    "moved, then copied": lambda calls: copied(calls, X.t().contiguous()),
    "copied, then moved": lambda calls: copied(calls, X).t().contiguous(),
    "moved": lambda calls: X.t().contiguous(),
    "in pieces": lambda calls: copied(calls, torch.cat([part.t() for part in X.chunk(2)], dim=1)),
    "written in pieces": lambda calls: written_in_pieces(calls),
}
BY_KERNELS = {
    "by the kernel": lambda calls: transposed_by_a_kernel(calls, X),
    "then copied by torch": lambda calls: transposed_by_a_kernel(calls, X).clone(),
    "from a copy": lambda calls: transposed_by_a_kernel(calls, X.clone()),
    "by strides": lambda calls: launch(calls, X.t(), torch.empty(40, 6), X.t()),
    "half of it": lambda calls: torch.cat([X[:3].t(), transposed_by_a_kernel(calls, X[3:])], dim=1),
}


def written_in_pieces(calls):
    y = torch.empty(40, 6)
    for i in range(0, 6, 2):
        y[:, i : i + 2].copy_(X[i : i + 2].t())
    return copied(calls, y)


@pytest.mark.parametrize("way", BY_TORCH)
def test_what_torch_moved_is_told(way):
    calls, output = watched(BY_TORCH[way])
    assert [i for _, i in calls.moved([output])] == [0]


@pytest.mark.parametrize("way", BY_KERNELS)
def test_what_a_kernel_moved_is_not_torchs(way):
    calls, output = watched(BY_KERNELS[way])
    assert calls.moved([output]) == []


@pytest.mark.parametrize(
    ("forward", "kept"),
    [
        (lambda calls: launch(calls, X, OLD[0], X * 2), [0]),
        (lambda calls: OLD[0].copy_(X), [0]),
        (lambda calls: launch(calls, X, OLD[0], X * 2).t(), [0]),
        (lambda calls: torch.empty(0).set_(OLD[0].untyped_storage()).copy_(X.flatten()), [0]),
        (lambda calls: launch(calls, X, OLD[0], X * 2).clone(), []),
        (lambda calls: launch(calls, X, torch.empty_like(X), X * 2), []),
        (lambda calls: torch.mm(X, X.t(), out=torch.empty(0)), []),
        (lambda calls: OLD[1], []),  # a constant: nobody wrote it
        (lambda calls: X.mul_(1.0), []),  # the judge's own
    ],
)
def test_outputs_in_older_memory_that_the_call_wrote(forward, kept):
    OLD[1].copy_(X)
    calls, output = watched(forward)
    assert calls.memory.kept([output]) == kept


def test_a_ring_of_capsules_is_a_buffer_and_foreign_memory_of_each_call_is_none():
    own = [torch.empty(X.shape) for _ in range(2)]
    ring = [torch.from_dlpack(t) for t in own]
    found = []
    for i in range(4):
        calls, output = watched(lambda calls, i=i: launch(calls, X, ring[i % 2], X * i))
        found.append(calls.memory.kept([output]))
    assert found == [[], [], [0], [0]]
    for _ in range(3):
        calls, output = watched(
            lambda calls: launch(calls, X, torch.from_dlpack(torch.empty(X.shape)), X * 2)
        )
        assert calls.memory.kept([output]) == []
        del output


def test_an_operator_with_another_body_is_the_candidates():
    known = known_operators()
    own = vars(operators)["Library"]("mkldnn", "FRAGMENT")
    own.define("hotloop_test_neg(Tensor a) -> Tensor")
    own.impl("hotloop_test_neg", lambda a: torch.softmax(a, -1), "CPU")
    calls = LibraryCalls([X], SHARED, known)
    with calls:
        torch.ops.mkldnn.hotloop_test_neg(X)
        torch.neg(X)
    assert calls.totals.keys() == {"softmax", "neg"}
