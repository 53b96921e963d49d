"""What an operation writes into its arguments is its result, and a list is many operations."""

import pytest
import torch

from hotloop.worker.library_calls import LibraryCalls

X = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
SHARED = range(X.data_ptr(), X.data_ptr() + X.numel() * 4)  # as the judge's memory is


def watched(forward):
    calls = LibraryCalls([X], SHARED)
    with calls:
        output = forward(calls)
    return calls, output


def by_a_kernel(calls, source):
    target = torch.empty_like(source)
    after = calls.before_launch([source, target])
    with torch._C._DisableTorchDispatch():  # a kernel, which no mode sees
        torch.mul(source, 2, out=target)
    after()
    return target


def in_place(calls):
    y = X.clone()
    torch._foreach_exp_([y])
    return y


def copied_by_a_list(calls):
    e, y = torch.exp(X), torch.empty(X.shape)
    torch._foreach_copy_([y, torch.empty(3)], [e, torch.ones(3)])
    return y


@pytest.mark.parametrize("forward", [in_place, copied_by_a_list])
def test_what_a_list_operation_wrote_has_its_history(forward):
    calls, output = watched(forward)
    assert calls.used([output]) == {"exp": X.numel()}
    assert calls.answers([output]) == [("exp", 0)]


def test_pieces_in_a_list_are_as_much_work_as_the_whole():
    calls, pieces = watched(lambda calls: torch._foreach_exp(list(X.chunk(3))))
    assert calls.used(pieces) == {"exp": X.numel()}
    assert calls.used(pieces[:1]) == {"exp": X.numel() // 3}


def test_each_element_of_a_list_has_its_own_history():
    def forward(calls):
        mine, theirs = torch.empty(X.shape), torch.empty(X.shape)
        torch._foreach_copy_([mine, theirs], [by_a_kernel(calls, X), torch.exp(X)])
        return mine, theirs

    calls, (mine, theirs) = watched(forward)
    assert calls.used([mine]) == {}
    assert calls.used([theirs]) == {"exp": X.numel()}
    assert calls.answers([mine]) == []
    assert calls.is_from_kernels(mine)
    assert not calls.is_from_kernels(theirs)


def test_lists_that_are_only_filled_are_no_work():
    calls, _ = watched(lambda calls: torch._foreach_zero_([torch.empty(4), torch.empty(5)]))
    assert calls.totals == {}


def statistics(calls):
    mean, var = torch.zeros(40), torch.ones(40)
    torch.batch_norm_update_stats(X, mean, var, 1.0)
    return mean


def observed_maximum(calls):
    low, high = torch.full((6,), float("inf")), torch.full((6,), float("-inf"))
    one, off = torch.ones(1, dtype=torch.long), torch.zeros(1, dtype=torch.long)
    scale, zero = torch.ones(6), torch.zeros(6, dtype=torch.int32)
    torch.fused_moving_avg_obs_fake_quant(
        X, one, off, low, high, scale, zero, 1.0, 0, 255, 0, True, False
    )
    return high


@pytest.mark.parametrize(
    ("forward", "name"),
    [
        (statistics, "batch_norm_update_stats"),
        (observed_maximum, "_fused_moving_avg_obs_fq_helper"),
    ],
)
def test_statistics_that_an_operation_wrote_are_its_result(forward, name):
    calls, output = watched(forward)
    assert calls.used([output]) == {name: X.numel()}


@pytest.mark.parametrize(
    "shaped", [torch.empty_like, torch.zeros_like, lambda e: e.new_empty(3), lambda e: e.zero_()]
)
def test_memory_in_the_shape_of_a_result_has_no_history(shaped):
    calls, output = watched(lambda calls: shaped(torch.exp(X)))
    assert calls.used([output]) == {}


def test_a_part_that_is_filled_leaves_the_rest_what_it_was():
    calls, part = watched(lambda calls: torch.exp(X).view(-1)[:4].zero_())
    assert calls.used([part]) == {"exp": X.numel()}


def test_complex_numbers_count_twice():
    calls, _ = watched(lambda calls: X.view(torch.complex64).sum(1))
    assert calls.totals == {"sum": X.numel()}


@pytest.mark.parametrize(
    ("forward", "name"),
    [
        (lambda calls: X[:, :20] + X[:, 20:], "add_of_parts"),
        (lambda calls: torch.maximum(X[::2], X[1::2]), "maximum_of_parts"),
        (lambda calls: X[:, :20] * X[:1, 20:].clone(), "mul"),
        (lambda calls: X - X[:, :1], "sub"),
        (lambda calls: X * X, "mul"),
        (lambda calls: (lambda y: y[:, :20] + y[:, 20:])(by_a_kernel(calls, X)), "add"),
    ],
)
def test_arithmetic_on_places_of_one_tensor_is_a_reduction(forward, name):
    calls, _ = watched(forward)
    assert set(calls.totals) == {name}


def test_a_table_of_all_values_is_torchs_answer():
    places = torch.arange(X.numel()).flip(0).view(X.shape)
    table = torch.exp(X.flatten())

    def forward(calls):
        y, found = torch.empty(X.shape), table[places]
        after = calls.before_launch([found, y])
        with torch._C._DisableTorchDispatch():
            y.copy_(found)
        after()
        return y

    calls, output = watched(forward)
    assert ("index", 0) in calls.answers([output])
    calls, output = watched(lambda calls: by_a_kernel(calls, table)[places])
    assert calls.answers([output]) == []
    calls, output = watched(lambda calls: by_a_kernel(calls, table[places]))
    assert calls.answers([output]) == []
