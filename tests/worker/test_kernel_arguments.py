"""What a look at a kernel's arguments meets there does not end the watch, nor run in the launch."""

import math

import pytest
import torch
import triton.language as tl
from triton.runtime.jit import reinterpret
from triton.tools.tensor_descriptor import TensorDescriptor

from hotloop.worker.fingerprint import Fingerprint
from hotloop.worker.launches import Launches
from hotloop.worker.library_calls import LibraryCalls

X = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
SHARED = range(X.data_ptr(), X.data_ptr() + X.numel() * 4)  # as the judge's memory is
SPARSE = torch.ones(3, dtype=torch.int64).to_sparse()  # no addresses can be read from it
HUGE = torch.arange(64, dtype=torch.float64) * 1e200


def test_values_whose_squares_are_too_large_end_no_watch():
    calls, others = LibraryCalls([X], SHARED), torch.arange(64, dtype=torch.float64)
    with calls:
        after = calls.before_launch([HUGE, others])
        with torch._C._DisableTorchDispatch():  # a kernel, which no mode sees
            others.copy_(HUGE * 2)
        after()
        torch.softmax(X, 1)
    assert calls.totals == {"_softmax": X.numel()}


def test_a_look_that_fails_ends_no_watch():
    calls = LibraryCalls([X], SHARED)
    with calls:
        after = calls.before_launch([X, SPARSE])
        with torch._C._DisableTorchDispatch():
            torch.exp(X)
        after()
        assert not calls.is_in_kernel
        torch.softmax(X, 1)
    assert calls.totals == {"_softmax": X.numel()}


@pytest.mark.parametrize(
    ("values", "alike"),
    [
        (HUGE * (1 + 1e-9), True),
        (HUGE * 2, False),
        (HUGE * 1e100, False),
        (torch.full((64,), math.nan, dtype=torch.float64), False),
        (torch.arange(64, dtype=torch.float64), False),
    ],
)
def test_values_near_the_largest_number_are_compared(values, alike):
    one, other = Fingerprint.of(HUGE), Fingerprint.of(values)
    assert one.is_like(other) == other.is_like(one) == alike


class Wrapped:
    """A pointer that computes what it points to when it is asked for."""

    dtype = X.dtype

    def __init__(self, tensor):
        self.base = tensor

    def data_ptr(self):
        return self.base.data_ptr()


class Late:
    """A descriptor whose tensor is made when it is asked for."""

    @property
    def base(self):
        return X.clone()


class Subclass(torch.Tensor):
    pass


def carrying(name, value):
    tensor = X.clone()
    setattr(tensor, name, value)
    return tensor


def seen(argument):
    found = []
    launches = Launches()
    with launches.watched(watcher=lambda tensors: found.extend(tensors) or (lambda: None)):
        launches.run((argument, 3, None), lambda: None)
    return [t.data_ptr() for t in found]


@pytest.mark.parametrize(
    "argument",
    [Wrapped(X), Late(), X.as_subclass(Subclass), (1, Wrapped(X))],
)
def test_an_argument_with_methods_of_its_own_is_refused(argument):
    with pytest.raises(TypeError, match="methods of its own"):
        seen(argument)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data_ptr", lambda: 0),
        ("untyped_storage", lambda: X.exp().untyped_storage()),
        ("stride", 4),
        ("base", X),
        ("numel", lambda: 1),  # the watch asks for it
    ],
)
def test_a_tensor_with_an_attribute_in_place_of_what_is_asked_for_is_refused(name, value):
    with pytest.raises(TypeError, match=f"torch's own `{name}`.* another name"):
        seen(carrying(name, value))


@pytest.mark.parametrize(
    ("name", "value"),
    [("half", X.half()), ("scale", 2.0), ("t", X.t()), ("dequantized", lambda: X), ("max", 3)],
)
def test_a_tensor_that_carries_values_of_any_other_name_is_seen(name, value):
    tensor = carrying(name, value)
    assert seen(tensor) == [tensor.data_ptr()]


@pytest.mark.parametrize(
    "argument",
    [
        X,
        X.t(),
        (X, 4),
        torch.nn.Parameter(X),
        TensorDescriptor.from_tensor(X, [4, 4]),
        reinterpret(X, tl.int32),
    ],
)
def test_tensors_and_what_triton_wraps_them_in_are_seen(argument):
    assert seen(argument) == [X.data_ptr()]


def test_bytes_that_are_expanded_lie_in_memory_once():
    calls, y = LibraryCalls([X], SHARED), torch.empty(X.shape)
    with calls:
        after = calls.before_launch([X, y, torch.empty(1).expand(1 << 38)])
        with torch._C._DisableTorchDispatch():
            y.copy_(X)
        after()
        output = torch.softmax(y, 1)
    assert calls.answers([output]) == [("_softmax", 0)]
