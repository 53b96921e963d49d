"""Outputs are copied bit for bit, whatever their dtype and layout."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker.copy_out import copy_out

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.bool)


class Operations(TorchDispatchMode):
    """Notes the names of the operations that run within it."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (0, 4), (2, 3, 4)])
def test_contiguous_outputs(dtype, shape):
    source = (torch.randn(shape) * 5).to(dtype)
    target = torch.zeros(shape, dtype=dtype)
    copy_out(target, source)
    assert torch.equal(target, source)


def test_bits_stay_as_they_are():
    source = torch.tensor([float("nan"), -0.0, float("-inf"), 1e-45])
    target = torch.zeros(4)
    copy_out(target, source)
    assert torch.equal(target.view(torch.int32), source.view(torch.int32))


def test_other_layouts_are_copied_by_value():
    source = torch.randn(6, 4).t()
    target = torch.zeros(4, 6)
    copy_out(target, source)
    assert torch.equal(target, source)
    odd = torch.arange(9, dtype=torch.uint8)[1:8]
    flat = torch.zeros(7, dtype=torch.uint8)
    copy_out(flat, odd)
    assert torch.equal(flat, odd)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("shape", [(), (7,), (0, 4), (2, 3, 4)])
def test_complex_outputs(dtype, shape):
    source = torch.randn(shape, dtype=dtype)
    target = torch.zeros(shape, dtype=dtype)
    with Operations() as seen:
        copy_out(target, source)
    assert torch.equal(target, source)
    assert ("aten.copy_" in seen.names) == (source.numel() == 0)


def test_a_view_that_is_conjugated_lazily_is_resolved():
    source = torch.randn(5, dtype=torch.complex64).conj()
    target = torch.zeros(5, dtype=torch.complex64)
    copy_out(target, source)
    assert torch.equal(target, source.resolve_conj())
    real = torch.view_as_real(target)
    assert torch.equal(real[:, 1], source.resolve_conj().imag)


def test_a_target_that_is_a_lazy_view_gets_the_values():
    memory = torch.zeros(5, dtype=torch.complex64)
    source = torch.randn(5, dtype=torch.complex64)
    copy_out(memory.conj(), source)
    assert torch.equal(memory, source.conj().resolve_conj())


def test_a_view_that_is_negated_lazily_is_resolved():
    source = torch.randn(5, dtype=torch.complex64).conj().imag
    target = torch.zeros(5)
    copy_out(target, source)
    assert torch.equal(target, source)
