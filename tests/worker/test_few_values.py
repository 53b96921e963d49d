"""Few values among zeros have the luck of a few, and what is wrong there stays refused."""

import dataclasses

import pytest
import torch
from problem_files import forward

from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import TILE, gate, make_bound, timed_gate
from hotloop.worker.few_values import FEWEST, LEAST, carriers, with_more_draws
from hotloop.worker.reference import build_reference

ERROR = 2e-7
SEEDS = range(1000, 1016)


def sparse(values, zeros, times=1.0):
    """Return a golden, its bound of one member and an output `times` as far off in each value."""
    golden = torch.zeros(values + zeros, dtype=torch.float64)
    golden[:values] = 0.04
    member, output = golden.clone(), golden.clone()
    member[:values] += ERROR
    output[:values] += times * ERROR
    return golden, make_bound(golden, [member], torch.float32, exact=False), output


@pytest.mark.parametrize("values", [1, 3, 4, 10])
def test_luck_is_that_of_the_values_alone(values):
    """As many values without a zero beside them have always had it."""
    times = 5.0 if values < 10 else 4.0
    for zeros in (0, 1440 - values):
        golden, bound, output = sparse(values, zeros, times)
        assert gate(output, golden, bound).passed
    assert gate(output, golden, dataclasses.replace(bound, few=None)).rule == "bulk"


@pytest.mark.parametrize("values", [1, 4, 10])
@pytest.mark.parametrize("times", [16.0, 1e3])
def test_values_that_are_further_off_than_luck_are_refused(values, times):
    golden, bound, output = sparse(values, 1440 - values, times)
    assert gate(output, golden, bound).rule == "bulk"


@pytest.mark.parametrize(("values", "zeros"), [(1440, 0), (1000, 440)])
def test_many_values_have_no_more_luck_than_before(values, zeros):
    golden, bound, output = sparse(values, zeros, 3.5)
    assert gate(output, golden, bound).rule == "bulk"


@pytest.mark.parametrize("values", [1, 10])
@pytest.mark.parametrize("size", [0.5, 3.0, 8.0])
def test_what_is_written_where_the_golden_is_0_is_judged_as_before(values, size):
    golden, bound, output = sparse(values, 1440 - values, 3.5)
    stray = golden.clone()
    for tensor in (output, stray):
        tensor[100] = size * values**0.5 * bound.bulk_factor * ERROR
    usual = dataclasses.replace(bound, few=None)
    assert gate(output, golden, bound).passed == gate(stray, golden, usual).passed == (size < 1)


def test_a_call_that_is_timed_has_that_luck_too():
    golden, bound, output = sparse(2, 1440, 6.0)
    usual = dataclasses.replace(bound, few=None)
    assert timed_gate(output.float(), golden.float(), bound)
    assert not timed_gate(output.float(), golden.float(), usual)
    output[7] = 6 * ERROR
    assert not timed_gate(output.float(), golden.float(), bound)
    _, _, far_off = sparse(2, 1440, 1e3)
    assert not timed_gate(far_off.float(), golden.float(), bound)


def test_what_is_not_0_in_the_golden_or_in_a_member_carries_rounding():
    golden = torch.zeros(2 * TILE + 5)
    member = golden.clone()
    golden[3], member[3], member[4], golden[TILE], golden[-1] = 1, 1, 1e-9, 2, -1
    assert carriers(golden, member).tolist() == [2, 1, 1]
    assert carriers(torch.zeros(0), torch.zeros(0)).tolist() == [0]
    rounded = torch.full((256,), 1e-8)
    bound = make_bound(torch.zeros(256).double(), [rounded], torch.float32, exact=False)
    assert bound.values == 256
    assert bound.few is None


def test_a_lucky_envelope_of_too_few_values_is_measured_on_other_draws():
    golden, bound, output = sparse(1, 1440, 40.0)
    assert bound.has_too_few
    (usual,) = with_more_draws((bound,), 1, lambda seed: ())
    assert not gate(output, golden, usual).passed
    _, other, _ = sparse(1, 1440)
    other.envelope_rmse *= 6
    other.envelope_max *= 6
    (pooled,) = with_more_draws((bound,), 1, lambda seed: (other,) if seed == 3 else ())
    assert gate(output, golden, pooled).passed
    assert not gate(sparse(1, 1440, 1e3)[2], golden, pooled).passed
    assert pooled.envelope_rmse < other.envelope_rmse  # the usual rules are as they were


@pytest.mark.parametrize(("values", "zeros"), [(FEWEST + 1, 1440), (1, LEAST - 2), (1440, 0)])
def test_no_draw_is_added_where_there_are_values_enough(values, zeros):
    _, bound, _ = sparse(values, zeros)
    (same,) = with_more_draws((bound,), 1, lambda seed: pytest.fail("there was no need"))
    assert same is bound


def folded(x, w, b):
    return torch.relu(torch.nn.functional.linear(x, w * 1.5, (b - 2.0) * 1.5))


def in_blocks(x, w, b):
    total = torch.zeros(x.shape[0], w.shape[0])
    for start in range(0, x.shape[1], 32):
        total = total + x[:, start : start + 32] @ w[:, start : start + 32].T
    return torch.relu((total + b - 2.0) * 1.5)


def rounded(x, w, b):
    return folded(x.bfloat16().float(), w.bfloat16().float(), b)


def test_kernels_behind_a_relu_of_negative_sums():
    """KernelBench level 2 problem 9 at a small size: 0 to 4 of 1,536 elements are above 0."""
    body, init = "torch.relu((self.l(x) - 2.0) * 1.5)", "self.l = torch.nn.Linear(64, 64)"
    book = CaseBook(build_reference(forward(body, "torch.rand(24, 64)", init=init)), "nominal")
    for seed in SEEDS:
        book.add("shipped", seed, cache_bytes=1 << 26)
    before = told = refused = 0
    for case in book:
        draw, (golden,) = book.materialise(case)
        arguments = (draw.inputs[0], draw.state["l.weight"], draw.state["l.bias"])
        usual = dataclasses.replace(case.bounds[0], few=None)
        for kernel in (folded, in_blocks):
            assert gate(kernel(*arguments), golden, case.bounds[0]).passed
            before += not gate(kernel(*arguments), golden, usual).passed
        told += bool(golden.any())
        refused += not gate(rounded(*arguments), golden, case.bounds[0]).passed
    assert before >= 1
    assert refused == told >= 4
