"""Arithmetic on several elements as one is a reduction, as that on places of one tensor is."""

import pytest
import torch

from hotloop.worker.library_calls import LibraryCalls

X = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
SHARED = range(X.data_ptr(), X.data_ptr() + X.numel() * 4)
TURN = torch.tensor(1 - 1j)


def operations(work, x=X):
    calls = LibraryCalls([X], SHARED)
    calls.slots = {X.data_ptr(): X}
    with calls:
        work(calls, x)
    return set(calls.totals)


def into_parts(calls, x):
    pairs = torch.empty(6, 20, dtype=torch.complex64)
    pairs.real.copy_(x[:, ::2])
    pairs.imag.copy_(x[:, 1::2])
    return pairs * TURN


def into_a_view(calls, x):
    pairs = torch.empty(6, 20, dtype=torch.complex64)
    torch.view_as_real(pairs).copy_(x.view(6, 20, 2))
    return pairs * TURN


def copied_by_a_kernel(calls, x):
    pairs = torch.zeros(6, 20, dtype=torch.complex64)
    y = torch.view_as_real(pairs)
    after = calls.before_launch([x, y])
    with torch._C._DisableTorchDispatch():
        y.copy_(x.view(6, 20, 2))
    after()
    return pairs * TURN


@pytest.mark.parametrize(
    "work",
    [
        lambda calls, x: x.view(torch.complex64) * TURN,
        lambda calls, x: torch.view_as_complex(x.view(6, 20, 2)) * TURN,
        lambda calls, x: x.clone().view(torch.complex64).t().contiguous() * TURN,
        lambda calls, x: x.view(torch.complex64).conj().resolve_conj() * TURN,
        lambda calls, x: x.view(torch.int64) * (2**32 + 1),
        lambda calls, x: torch.cat([x, x]).view(torch.complex64).mul_(TURN),
        into_parts,
        into_a_view,
        copied_by_a_kernel,
    ],
)
def test_several_elements_as_one_are_joined(work):
    assert "mul_of_wider_elements" in operations(work)


def left_by_a_kernel(calls, x):
    y = torch.empty_like(x)
    after = calls.before_launch([x, y])
    with torch._C._DisableTorchDispatch():
        torch.mul(x, 2, out=y)
    after()
    return y.view(torch.complex64) * TURN


def in_memory_cut_in_any_way(calls, x):
    memory = torch.empty(X.numel() * 4, dtype=torch.uint8)
    y = memory.zero_().view(torch.float32).view(X.shape)
    y.copy_(x)
    return y * 2


@pytest.mark.parametrize(
    "work",
    [
        lambda calls, x: x * 2,
        lambda calls, x: x.view(torch.int32) * 2,
        lambda calls, x: x.half().view(torch.int16) * 2,
        lambda calls, x: x.view(torch.uint8) * 2,  # narrower: parts of one element
        lambda calls, x: x.double() * 2,
        lambda calls, x: x[1:].to(torch.complex64) * TURN,
        lambda calls, x: torch.complex(x, x)[1:].clone() * TURN,
        lambda calls, x: x.view(torch.int64).clone().view(torch.float32) * 2,
        left_by_a_kernel,
        in_memory_cut_in_any_way,
    ],
)
def test_elements_as_they_were_written_are_not(work):
    assert {name for name in operations(work) if name.startswith("mul")} == {"mul"}


def test_choices_among_wider_elements_join_nothing():
    work = lambda calls, x: torch.where(x.view(torch.int64) > 0, 1, 0)  # noqa: E731
    assert operations(work) == {"gt_of_wider_elements", "where"}
    assert operations(lambda calls, x: x.view(torch.int64).flip(0).view(torch.float32)) == set()
