"""Kernels behind a ReLU of negative sums: honest ones pass on every draw, wrong ones do not.

KernelBench level 2 problem 9 at a small size: 0 to 4 of 1,536 elements are above 0.
"""

import dataclasses
import time

import pytest
import torch
from problem_files import forward

from hotloop.worker import cases
from hotloop.worker.cases import RENEWED_S, CaseBook
from hotloop.worker.changed_case import changed_case
from hotloop.worker.compare import gate
from hotloop.worker.known_case import Known
from hotloop.worker.reference import build_reference

LUCKY = 3062
"""One value, which all members meet 100 times nearer than is usual; then six of seven have none."""
ONE = 1005
"""One value; of the next nine draws seven have some."""
SEEDS = (*range(1000, 1006), LUCKY)
BODY = "torch.relu((self.l(x) - 2.0) * 1.5)"
INIT = "self.l = torch.nn.Linear(64, 64)"


def folded(x, w, b):
    return torch.relu(torch.nn.functional.linear(x, w * 1.5, (b - 2.0) * 1.5))


def in_blocks(x, w, b):
    total = torch.zeros(x.shape[0], w.shape[0])
    for start in range(0, x.shape[1], 32):
        total = total + x[:, start : start + 32] @ w[:, start : start + 32].T
    return torch.relu((total + b - 2.0) * 1.5)


def rounded(x, w, b):
    return folded(x.bfloat16().float(), w.bfloat16().float(), b)


def arguments_of(draw):
    return draw.inputs[0], draw.state["l.weight"], draw.state["l.bias"]


@pytest.fixture(scope="module")
def book():
    book = CaseBook(build_reference(forward(BODY, "torch.rand(24, 64)", init=INIT)), "nominal")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cases, "RENEWED_S", 60.0)  # so that a busy machine makes as many draws
        for seed in SEEDS:
            book.add("shipped", seed, cache_bytes=1 << 26)
    return book


def test_kernels_behind_a_relu_of_negative_sums(book):
    before = told = refused = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        arguments = arguments_of(draw)
        usual = dataclasses.replace(case.bounds[0], few=None)
        for kernel in (folded, in_blocks):
            assert gate(kernel(*arguments), golden, case.bounds[0]).passed
            before += not gate(kernel(*arguments), golden, usual).passed
        told += bool(golden.any())
        refused += not gate(rounded(*arguments), golden, case.bounds[0]).passed
    assert before >= 1
    assert refused == told >= 4


def test_the_same_with_an_element_changed_and_with_other_seeds(book):
    told = 0
    for case in list(book):
        book.add_like(case, case.seed + 500)
        known = Known(book.reference, case, *book.materialise(case))
        for now in (book.cases.pop(), changed_case(book, known, [], anew=True).case):
            draw, (golden,) = now.kept
            for kernel in (folded, in_blocks):
                assert gate(kernel(*arguments_of(draw)), golden, now.bounds[0]).passed
            wrong = gate(rounded(*arguments_of(draw)), golden, now.bounds[0])
            assert wrong.passed == (not golden.any())
            told += not wrong.passed
    assert told >= 6


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, None])
def test_a_case_stays_where_more_draws_do_not_fit(error):
    reference = build_reference(forward(BODY, "torch.rand(24, 64)", init=INIT))
    get_inputs, drawn = reference.loaded.get_inputs, []

    def short_of_memory():
        drawn.append(1)
        if error is not None and len(drawn) > 1:
            raise error("no room beside the case")
        return get_inputs()

    reference.loaded.get_inputs = short_of_memory
    book = CaseBook(reference, "nominal")
    book.add("shipped", ONE, cache_bytes=1 << 26)
    known = dataclasses.replace(book.cases[0], bounds=(unpooled(book.cases[0].bounds[0]),))
    drawn.clear()
    book.add_like(known, ONE)
    assert [case.bounds[0].has_too_few for case in book] == [True, True]
    pooled = error is None
    assert [case.bounds[0].pooled_max > 0 for case in book] == [pooled, pooled]
    assert [case.kept is not None for case in book] == [True, True]


def unpooled(bound):
    return dataclasses.replace(bound, pooled_rmse=0.0, pooled_max=0.0)


@pytest.mark.parametrize("is_slow", [False, True])
def test_what_a_golden_takes_counts_towards_the_time_of_more_draws(is_slow):
    loaded = forward(f"LOOK({BODY})", "torch.rand(24, 64)", init=INIT)
    loaded.namespace["LOOK"] = lambda x: x
    book = CaseBook(build_reference(loaded), "nominal")

    def slow(x):
        if x.dtype is torch.float64 and is_slow:
            time.sleep(RENEWED_S)
        return x

    loaded.namespace["LOOK"] = slow
    book.add("shipped", ONE, cache_bytes=1 << 26)
    known = dataclasses.replace(book.cases[0], bounds=(unpooled(book.cases[0].bounds[0]),))
    assert known.envelope_s < RENEWED_S
    book.add_like(known, ONE)
    assert [case.bounds[0].pooled_max == 0 for case in book] == [is_slow, is_slow]
