"""What torch computed is told by what the dispatcher ran, not by what Python objects say of it."""

from contextlib import contextmanager

import pytest
import torch
from torch import library as operators

from hotloop.worker.dispatched import dispatched
from hotloop.worker.library_calls import LibraryCalls
from hotloop.worker.own_operators import OwnOperators, known_operators

X = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
SOFTMAX = torch.ops.aten._softmax
ROLL = torch.ops.aten.roll


@contextmanager
def written(target, name, value):
    """Give an object of torch's another attribute for a while."""
    before = getattr(target, name)
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, before)


def watched(forward):
    calls = LibraryCalls([X], range(0))
    with calls:
        output = forward()
    return calls, output


@pytest.mark.parametrize(
    ("target", "name", "value"),
    [
        (SOFTMAX, "__name__", "view"),
        (SOFTMAX.default, "__name__", "view.default"),
        (SOFTMAX.default, "_name", "aten::view"),
        (SOFTMAX.default, "_overloadname", "default"),  # nothing is changed
    ],
)
def test_an_operator_with_another_name_is_what_it_was(target, name, value):
    with written(target, name, value):
        calls, output = watched(lambda: torch.softmax(X, 1))
    assert calls.totals == {"_softmax": X.numel()}
    assert torch.equal(output, torch.softmax(X, 1))
    assert calls.answers([output]) == [("_softmax", 0)]


def test_a_function_in_place_of_an_operators_own_is_not_called():
    asked = []
    with written(ROLL.default, "_op", lambda *args: asked.append(args)):
        calls, output = watched(lambda: torch.roll(X, [1], [0]))
    assert not asked
    assert torch.equal(output, torch.roll(X, [1], [0]))
    assert calls.totals == {}


def test_another_operators_schema_makes_it_that_operator():
    with written(ROLL.default, "_schema", torch.ops.aten.neg.default._schema):
        assert dispatched(ROLL.default).name == "neg"
    assert dispatched(ROLL.default).name == "roll"
    assert dispatched(torch.softmax) is None


def test_a_body_that_only_the_dispatcher_knows_is_the_candidates():
    before = known_operators()
    operator = torch.ops.aten.diagonal_copy.default
    assert OwnOperators(before, "cpu").key(dispatched(operator), [X]) is None
    own = vars(operators)["Library"]("aten", "IMPL")
    own.m.impl("diagonal_copy", "CPU", lambda x, *places: torch.softmax(x, 1), False)
    calls = LibraryCalls([X], range(0), before)
    try:
        with calls:
            output = operator(X)
            torch.neg(X)
    finally:
        own.m.reset()
    assert calls.totals.keys() == {"softmax", "neg"}
    assert calls.answers([output]) == [("softmax", 0)]
    assert OwnOperators(before, "cpu").key(dispatched(operator), [X]) is None


def test_a_library_that_came_with_torch_is_not_the_candidates():
    before = known_operators()
    ops = torch.ops.mkldnn_prepacked
    calls = LibraryCalls([X], range(0), before)
    with calls:
        held = ops.conv2d_prepack(
            torch.ones(2, 40, 1, 1), None, [1, 1], [0, 0], [1, 1], 1, [1, 40, 6, 1], "none"
        )
        ops.conv2d_run(X.t().contiguous()[None, :, :, None], held)
    assert "mkldnn_prepacked::conv2d_run" in calls.totals
    assert OwnOperators(before, "cpu").key(dispatched(ops.conv2d_run.default), [X]) is None


def test_an_operator_that_was_not_there_before_is_the_candidates_in_any_namespace():
    before = known_operators()
    own = vars(operators)["Library"]("mkldnn_prepacked", "FRAGMENT")
    own.define("twice_the_exponential(Tensor x) -> Tensor")
    own.impl("twice_the_exponential", lambda x: torch.exp(x) * 2, "CPU")
    calls = LibraryCalls([X], range(0), before)
    with calls:
        torch.ops.mkldnn_prepacked.twice_the_exponential(X)
    assert calls.totals.keys() == {"exp", "mul"}
