"""Whole numbers made of floats: rounding may move them over a step, and nothing else may."""

import pytest
import torch
from problem_files import forward

from hotloop.errors import ProblemError
from hotloop.worker.reference import build_reference
from hotloop.worker.steps import only_steps

ROWS, COLUMNS = 128, 512
QUANTISED = "torch.round(x / (x.abs().amax(-1, keepdim=True) / 127.0)).to(torch.int8)"
X = f"torch.randn({ROWS}, {COLUMNS})"


def built(body, *inputs):
    return build_reference(forward(body, *inputs))


def drawn(reference, seed):
    draw = reference.draw(seed, "shipped")
    return draw, reference.golden(draw)[0]


def by_reciprocal(x):
    return torch.round(x * (127.0 / x.abs().amax(-1, keepdim=True))).to(torch.int8)


def test_quantisation_by_a_reciprocal_is_right_wherever_it_differs():
    reference = built(QUANTISED, X)
    differed = 0
    for seed in range(12):
        draw, golden = drawn(reference, seed)
        got = by_reciprocal(draw.inputs[0])
        differed += not torch.equal(got, golden.to(torch.int8))
        assert only_steps(reference, draw, 0, got), seed
    assert differed, "or this test says nothing"


def test_eager_may_be_off_by_a_few_steps_and_not_by_many():
    reference = built(QUANTISED, "torch.randn(512, 1024)")
    assert {"shipped", "normal"} <= set(reference.profiles)
    with pytest.raises(ProblemError, match="depends on rounding"):
        built("torch.sin(x * 1e7) > 0", "torch.randn(256, 256)")


def in_bfloat16(x):
    scale = (x.abs().amax(-1, keepdim=True) / 127.0).bfloat16().float()
    return torch.round(x / scale).to(torch.int8)


def cut(x):
    return (x / (x.abs().amax(-1, keepdim=True) / 127.0)).to(torch.int8)


def one_row_off(x):
    return torch.cat([by_reciprocal(x[:-1]), by_reciprocal(x[:1])])


def one_element_off(x):
    return by_reciprocal(x).index_put((torch.tensor(3), torch.tensor(5)), torch.tensor(99).char())


@pytest.mark.parametrize("wrong", [in_bfloat16, cut, one_row_off, one_element_off])
def test_what_rounding_does_not_explain_is_wrong(wrong):
    reference = built(QUANTISED, X)
    draw, _ = drawn(reference, 3)
    assert not only_steps(reference, draw, 0, wrong(draw.inputs[0]))


def test_what_stands_on_a_step_exactly_is_no_matter_of_rounding():
    reference = built("x > 0.5", "torch.randint(0, 9, (64, 64)) / 8")
    draw, _ = drawn(reference, 0)
    (x,) = draw.inputs
    assert only_steps(reference, draw, 0, x > 0.5)
    assert not only_steps(reference, draw, 0, x >= 0.5)


def test_an_index_of_computed_scores_may_be_that_of_an_almost_equal_one():
    reference = built("(x.bfloat16() @ y.bfloat16()).argmax(-1)", X, f"torch.randn({COLUMNS}, 64)")
    draw, golden = drawn(reference, 0)
    x, y = (t.bfloat16().float() for t in draw.inputs)
    scores = x @ y
    assert only_steps(reference, draw, 0, scores.bfloat16().argmax(-1))
    second = scores.topk(2).indices[:, 1]
    assert not only_steps(reference, draw, 0, second)
    some = torch.where(torch.arange(ROWS) < 20, second, golden)
    assert not only_steps(reference, draw, 0, some)


def last_of_equals(scores):
    return scores.shape[-1] - 1 - scores.flip(-1).argmax(-1)


def test_scores_of_16_bits_may_tie_where_exact_ones_do_not():
    x, y = f"{X}.bfloat16()", f"torch.randn({COLUMNS}, 64).bfloat16()"
    reference = built("(x @ y).argmax(-1)", x, y)
    for seed in range(6):
        draw, golden = drawn(reference, seed)
        a, b = (t.float() for t in draw.inputs)
        assert only_steps(reference, draw, 0, last_of_equals((a @ b).bfloat16()))
        assert not only_steps(reference, draw, 0, (golden + 1) % 64)


def test_a_size_that_follows_from_values_explains_nothing():
    reference = built("torch.unique(torch.round(x * 1e4).int())", X)
    draw, golden = drawn(reference, 0)
    assert not only_steps(reference, draw, 0, (golden + 1).int())


def test_floats_and_outputs_of_integers_alone_are_not_excused():
    reference = built("x * 2", X)
    draw, _ = drawn(reference, 0)
    assert not only_steps(reference, draw, 0, draw.inputs[0])
    reference = built("x + 1", "torch.randint(0, 9, (8, 8))")
    draw, golden = drawn(reference, 0)
    assert not only_steps(reference, draw, 0, golden + 1)


def test_without_the_runs_nothing_is_excused(monkeypatch):
    reference = built(QUANTISED, X)
    draw, golden = drawn(reference, 0)

    def full(draw):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(reference, "golden", full)
    assert not only_steps(reference, draw, 0, golden.to(torch.int8))
