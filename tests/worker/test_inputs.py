"""What get_inputs may return, and that a seed draws the same values again."""

import random

import numpy as np
import pytest
import torch

from hotloop.core.problem import Problem, ProblemKind
from hotloop.errors import ProblemError
from hotloop.worker.inputs import check_repeats, seeded
from hotloop.worker.load import load_problem
from hotloop.worker.reference import build_reference
from hotloop.worker.session import Session

SOURCE = """
import numpy as np
import torch
calls = []
class Model(torch.nn.Module):
    def forward(self, x, n=1):
        return {forward}
def get_inputs():
    return {inputs}
"""


def problem(inputs, forward="x * 2"):
    source = SOURCE.format(inputs=inputs, forward=forward)
    return Problem(name="m", kind=ProblemKind.KERNELBENCH, source=source)


def reference(inputs, forward="x * 2"):
    return build_reference(load_problem(problem(inputs, forward), device="cpu"))


def test_a_seed_holds_for_every_global_generator_and_leaves_each_as_it_was():
    def draw():
        return random.random(), np.random.rand(), torch.rand(()).item()

    def draw_seeded(seed):
        with seeded(seed, "cpu"):
            return draw()

    assert draw_seeded(3) == draw_seeded(3)
    assert all(a != b for a, b in zip(draw_seeded(3), draw_seeded(4), strict=True))
    with seeded(1, "cpu"):
        expected = [draw(), draw()]
    with seeded(1, "cpu"):
        got = [draw()]
        draw_seeded(5)
        got.append(draw())
    assert got == expected


def test_inputs_from_numpy_are_the_same_when_they_are_drawn_again():
    built = reference("[torch.from_numpy(np.random.rand(4, 6)).float()]")
    first, again, other = (built.draw(seed, "shipped").inputs[0] for seed in (7, 7, 8))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    "inputs",
    [
        "[torch.from_numpy(np.random.default_rng().random((4, 6))).float()]",
        "[torch.rand(4, 6), calls.append(1) or torch.tensor(len(calls))]",
    ],
)
def test_inputs_that_differ_under_one_seed_are_one_line(inputs):
    with pytest.raises(ProblemError, match="the same values after the same seed") as caught:
        reference(inputs, "x * n")
    assert "\n" not in str(caught.value)


def test_equal_draws_may_hold_nan_and_plain_values():
    x = torch.tensor([1.0, float("nan")])
    check_repeats((x, 3, "a"), (x.clone(), 3, "a"))
    with pytest.raises(ProblemError, match="argument 0"):
        check_repeats((x,), (torch.tensor([2.0, float("nan")]),))


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ("[[torch.rand(4), torch.rand(4)]]", "a list of Tensor as argument 0"),
        ("[torch.rand(4), {'a': torch.rand(4)}]", "a dict of Tensor as argument 1"),
        ("[torch.rand(4), object()]", "a object as argument 1; make it one"),
    ],
)
def test_arguments_that_no_candidate_can_be_given_are_one_line(inputs, words):
    with pytest.raises(ProblemError, match=words) as caught:
        reference(inputs, "x[0] * 2")
    assert "\n" not in str(caught.value)


def test_plain_arguments_pass():
    assert reference("[torch.rand(4, 6), 3]", "x * n").draw(1, "shipped").inputs[1] == 3


@pytest.mark.parametrize(
    "inputs",
    [
        "[torch.rand(12, 1).expand(12, 20)]",
        "[torch.rand(20).expand(12, 20)]",
        "[torch.rand(31).unfold(0, 20, 1)]",
    ],
)
def test_an_overlapping_input_gets_memory_for_each_element(inputs):
    session = Session(problem(inputs), "cpu", isolation="T0", tracing=False)
    try:
        book = session.nominal.book
        draw = book.draw_of(book.cases[0])
        board = session.nominal.board
        board.write_inputs(0, draw)
        assert board.inputs_unchanged(0, draw)
        assert tuple(draw.inputs[0].shape) == (12, 20)
        assert draw.inputs[0].is_contiguous()
    finally:
        session.close()


def test_a_transposed_input_keeps_its_strides():
    draw = reference("[torch.rand(12, 20).t()]").draw(1, "shipped")
    assert draw.inputs[0].stride() == (1, 20)
