"""Few values among zeros have the luck of a few, and what is wrong there stays refused."""

import dataclasses
import time

import pytest
import torch

from hotloop.worker.compare import TILE, gate, make_bound, reseeded, timed_gate
from hotloop.worker.few_values import (
    FEWEST,
    LEAST,
    MORE_DRAWS,
    MOST_DRAWS,
    carriers,
    with_more_draws,
)

ERROR = 2e-7


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


def more_draws(bound, bounds_of, took_s=0.0, limit_s=60.0):
    """Return the bound of a draw with seed 1 with more draws, and how many were made."""
    calls = []

    def counted(seed):
        calls.append(seed)
        return bounds_of(seed)

    (pooled,) = with_more_draws((bound,), 1, counted, took_s=took_s, limit_s=limit_s)
    return pooled, len(calls)


def test_a_lucky_envelope_of_too_few_values_is_measured_on_other_draws():
    golden, bound, output = sparse(1, 1440, 40.0)
    assert bound.has_too_few
    usual, _ = more_draws(bound, lambda seed: ())
    assert not gate(output, golden, usual).passed
    pooled, _ = more_draws(bound, lambda seed: (rough(1),) if seed == 3 else ())
    assert gate(output, golden, pooled).passed
    assert not gate(sparse(1, 1440, 1e3)[2], golden, pooled).passed
    assert pooled.envelope_rmse < rough(1).envelope_rmse  # the usual rules are as they were


def rough(values):
    """Return the bound of a draw whose envelope is six times further off than `sparse`'s."""
    golden, _, member = sparse(values, 1441 - values, 6.0)
    return make_bound(golden, [member], torch.float32, exact=False)


@pytest.mark.parametrize(
    ("every", "draws"), [(1, MORE_DRAWS), (8, 8 * MORE_DRAWS), (20, MOST_DRAWS), (0, MOST_DRAWS)]
)
def test_draws_without_a_value_are_passed_over_up_to_a_number(every, draws):
    """`every`: how many draws there are to one that has a value."""
    _, bound, _ = sparse(1, 1440)
    empty = sparse(0, 1441)[1]

    def bounds_of(seed):
        if every and (seed - 1) % every == 0:
            return (rough(1) if seed > 1 + draws // 2 else bound,)
        return (empty,) if seed % 2 else ()

    pooled, made = more_draws(bound, bounds_of)
    assert made == draws
    assert (pooled.few.envelope_max > bound.envelope_max) == bool(every)


def test_more_draws_are_made_where_they_are_quick():
    def slow(seed):
        time.sleep(0.01)
        return ()

    _, bound, _ = sparse(1, 1440)
    assert more_draws(bound, slow, took_s=0.31, limit_s=0.3) == (bound, 0)
    _, made = more_draws(bound, slow, limit_s=0.005)
    assert 1 <= made <= MORE_DRAWS
    pooled, _ = more_draws(bound, lambda seed: (rough(1),), took_s=0.29, limit_s=0.3)
    assert pooled.pooled_max > bound.envelope_max


@pytest.mark.parametrize(
    ("values", "zeros"), [(FEWEST + 1, 1440), (1, LEAST - 2), (1440, 0), (0, 1440)]
)
def test_no_draw_is_added_where_there_are_values_enough_or_none(values, zeros):
    _, bound, _ = sparse(values, zeros)
    same, _ = more_draws(bound, lambda seed: pytest.fail("there was no need"))
    assert same is bound
    assert same.pooled_max == 0


def test_an_output_of_zeros_alone_is_judged_as_ever_beside_one_that_is_pooled():
    golden, empty, _ = sparse(0, 1441)
    stray = golden.clone()
    stray[5] = 1e-30
    bounds = (sparse(1, 1440)[1], empty)
    _, same = with_more_draws(bounds, 1, lambda s: (rough(1),) * 2, took_s=0.0, limit_s=60.0)
    assert gate(golden.clone(), golden, same).passed
    assert gate(stray, golden, same).rule == "bulk"


@pytest.mark.parametrize("values", [1, 3])
def test_many_values_of_another_draw_weigh_no_more_than_one_each(values):
    golden, bound, _ = sparse(values, 1441 - values)
    worst = sparse(56, 1385)
    member = worst[2].clone()
    member[0] += 50 * ERROR  # 7 times as far off a value, one of them 51 times
    other = make_bound(worst[0], [member], torch.float32, exact=False)
    pooled, _ = more_draws(bound, lambda seed: (other,))
    share = (values / 56) ** 0.5
    assert pooled.few.envelope_rmse == pytest.approx(other.envelope_rmse * share)
    assert gate(sparse(values, 1441 - values, 50.0)[2], golden, pooled).passed
    assert gate(sparse(values, 1441 - values, 200.0)[2], golden, pooled).rule == "bulk"


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_where_more_draws_do_not_fit_the_bounds_stay_as_they_were(error):
    def bounds_of(seed):
        if seed < 4:
            return (rough(1),)
        raise error("no room")

    golden, bound, output = sparse(1, 1440, 40.0)
    same, made = more_draws(bound, bounds_of)
    assert made == 3
    assert same.pooled_max == 0
    assert not gate(output, golden, same).passed
    assert gate(sparse(1, 1440, 4.0)[2], golden, same).passed
    with pytest.raises(ValueError, match="broken"):
        more_draws(bound, lambda seed: int("broken"))


def test_bounds_for_other_inputs_keep_what_other_draws_said():
    golden, bound, output = sparse(1, 1440, 40.0)
    lucky = golden.clone()
    assert not gate(output, golden, reseeded(bound, golden, [lucky])).passed
    pooled, _ = more_draws(bound, lambda seed: (rough(1),))
    again = reseeded(reseeded(pooled, golden, [lucky]), golden, [lucky])
    assert gate(output, golden, again).passed
    assert not gate(sparse(1, 1440, 1e3)[2], golden, again).passed
    assert again.envelope_rmse == bound.envelope_rmse
    same, made = more_draws(again, lambda seed: pytest.fail("it is known"))
    assert (same, made) == (again, 0)
    many, _, _ = sparse(30, 1411)
    assert reseeded(pooled, many, [many.clone()]).few.envelope_max == bound.envelope_max
