"""What the watch reads by is told when it is replaced, also where it is put back at once."""

import torch
from torch.utils import _pytree as tree

from hotloop.worker import library_calls
from hotloop.worker.library_calls import LibraryCalls
from hotloop.worker.state_guard import StateGuard
from hotloop.worker.tensors_in import tensors_in

X = torch.rand(6, 40)


class All:
    def __contains__(self, name):
        return True

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__


def patched_by(forward):
    guard = StateGuard()
    calls = LibraryCalls([X], range(0))
    calls.look = guard.look
    with calls:
        forward()
    return guard.patched()


def test_a_method_that_is_replaced_for_one_operation_is_told(monkeypatch):
    def forward():
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "numel", lambda self: 1, raising=False)
            torch.softmax(X, -1)

    assert patched_by(forward) == ["Tensor.numel"]


def test_a_constant_that_is_replaced_for_one_operation_is_told(monkeypatch):
    def forward():
        with monkeypatch.context() as patch:
            patch.setattr(library_calls, "NO_ARITHMETIC", All())
            torch.softmax(X, -1)

    assert patched_by(forward) == ["hotloop.worker.library_calls.NO_ARITHMETIC"]


def test_other_attributes_and_plain_work_are_nobodys_patch(monkeypatch):
    def forward():
        monkeypatch.setattr(torch.Tensor, "a_name_of_its_own", 1, raising=False)
        torch.softmax(X, -1)

    assert patched_by(forward) == []


def test_tensors_are_found_without_torchs_table(monkeypatch):
    monkeypatch.delitem(tree.SUPPORTED_NODES, tuple)
    y = X + 1
    found = list(tensors_in((1, [X, None], {"out": (y,)}, "text")))
    assert [id(t) for t in found] == [id(X), id(y)]
    calls = LibraryCalls([X], range(0))
    with calls:
        output = torch.softmax(X, -1).exp()
    assert set(calls.used([output])) == {"_softmax", "exp"}
