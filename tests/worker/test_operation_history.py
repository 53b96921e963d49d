"""Work is summed over what reaches a kernel or an output, and over nothing else."""

from hotloop.worker import operation_history
from hotloop.worker.operation_history import OperationHistory

X, Y, Z = 1, 2, 3


def test_calls_of_an_operation_are_summed():
    history = OperationHistory()
    for piece in range(10, 14):
        history.note("exp", 25, [X], [piece])
    history.note(None, 100, range(10, 14), [Y])
    assert history.behind([Y]) == {"exp": 100}
    assert history.behind([11]) == {"exp": 25}
    assert history.behind([Z]) == {}


def test_what_kernels_were_given_counts_always():
    history = OperationHistory()
    history.note("exp", 25, [X], [Y])
    history.take([Y])
    assert history.behind([]) == {"exp": 25}
    history.note("sum", 5, [Y], [Z])  # what the kernel left there
    assert history.behind([Z]) == {"exp": 25, "sum": 5}


def test_an_operation_counts_once_on_many_ways():
    history = OperationHistory()
    history.note("exp", 25, [X], [Y])
    for _ in range(3):
        history.note("add", 1, [Y, Z], [Z])
    assert history.behind([Z, Y]) == {"exp": 25, "add": 3}


def test_a_copy_into_a_part_keeps_the_rest():
    history = OperationHistory()
    history.note("exp", 25, [X], [Y])
    history.note("log", 25, [X], [Z])
    history.note(None, 50, [Z], [Y], partly=True)
    assert history.behind([Y]) == {"exp": 25, "log": 25}
    history.note(None, 50, [Z], [Y])
    assert history.behind([Y]) == {"log": 25}


def test_memory_is_bounded_and_later_work_counts(monkeypatch):
    monkeypatch.setattr(operation_history, "MAX_NODES", 3)
    history = OperationHistory()
    for _ in range(5):
        history.note("exp", 2, [X], [Y])
    assert history.behind([]) == {"exp": 4}
