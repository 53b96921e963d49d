"""Inputs without a tensor and outputs without an element are the problem's fault, in one line."""

import pytest
import torch
from problem_files import forward, model

from hotloop.errors import ProblemError
from hotloop.worker.error_stats import error_stats, unravel
from hotloop.worker.reference import build_reference


@pytest.mark.parametrize(
    ("body", "inputs", "told"),
    [
        ("x + x", ["torch.rand(4, 0)"], r"m: output 0 has the shape \(4, 0\) and so no elements"),
        ("(x, x[:0])", ["torch.rand(4, 3)"], r"m: output 1 has the shape \(0, 3\)"),
        ("x", ["'a'", "'b'"], "m: get_inputs.. should return the tensors .* no tensor but str"),
    ],
)
def test_what_no_value_can_be_wrong_in_is_refused(body, inputs, told):
    with pytest.raises(ProblemError, match=told) as caught:
        build_reference(forward(body, *inputs))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_one_element_and_a_plain_value_beside_a_tensor_are_judged():
    reference = build_reference(forward("x + y", "torch.rand(1)", "2.0"))
    assert reference.specs()[1][0].shape == (1,)


@pytest.mark.parametrize("returned", ["None", "7"])
def test_inputs_that_are_no_list_are_told_with_the_problem(returned):
    source = (
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
        f"def get_inputs():\n    return {returned}\n"
    )
    with pytest.raises(ProblemError, match=r"^m: get_inputs\(\) should return a list"):
        build_reference(model(source))


def test_the_place_of_the_worst_error_of_an_empty_tensor_is_no_crash():
    empty = torch.zeros(4, 0)
    assert unravel(error_stats(empty, empty).worst, (4, 0)) == (0, 0)
    assert unravel(5, (2, 3)) == (1, 2)
