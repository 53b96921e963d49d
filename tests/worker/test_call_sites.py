"""Torch inside a launch is the kernel's where the interpreter asks; a candidate's own is noted."""

import numpy as np
import torch

from hotloop.worker import interpreter_builder, interpreter_maths
from hotloop.worker.library_calls import LibraryCalls

X = torch.rand(6, 40, generator=torch.Generator().manual_seed(0))


def in_a_launch(work):
    calls = LibraryCalls([X], range(0))
    with calls:
        after = calls.before_launch([X])
        work(X)
        after()
    return calls.in_kernels, set(calls.totals)


def test_a_kernel_that_multiplies_with_torch_inside_is_a_kernel():
    eye = np.eye(40, dtype=np.float32)
    assert in_a_launch(lambda x: interpreter_builder._matmul(x.numpy(), eye)) == ({}, set())
    special = interpreter_maths._by_torch(torch.special.i0)
    assert in_a_launch(lambda x: special(x.numpy())) == ({}, set())


def test_what_a_candidates_code_does_inside_a_launch_is_told():
    assert in_a_launch(lambda x: torch.softmax(x, -1)) == ({"_softmax": 240}, {"_softmax"})
    assert in_a_launch(lambda x: list(map(torch.exp, [x]))) == ({"exp": 240}, {"exp"})


def test_memory_that_is_made_inside_a_launch_is_no_work():
    assert in_a_launch(lambda x: torch.empty(8).view(2, 4).clone()) == ({}, set())


def test_a_forged_flag_hides_nothing():
    calls = LibraryCalls([X], range(0))
    with calls:
        calls.is_in_kernel = True
        torch.softmax(X, -1)
        calls.is_in_kernel = False
    assert calls.in_kernels == {"_softmax": 240}
