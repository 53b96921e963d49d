"""Arguments that forward does not take are told with both sides of it, and never by mistake."""

import pytest
from problem_files import forward, model

from hotloop.errors import ProblemError
from hotloop.worker.reference import build_reference

FILE = """
import functools
def scaled(work):
    @functools.wraps(work)
    def call(self, x):
        return work(self, x, 2.0)
    return call
class Model(torch.nn.Module):
    {line}
def get_inputs():
    return [{inputs}]
"""


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ("torch.rand(4), 3", r"forward\(x\) .* returns \(Tensor, int\): too many positional"),
        ("", r"forward\(x\) .* returns \(nothing\): missing a required argument: 'x'"),
    ],
)
def test_another_number_of_arguments_is_told(inputs, told):
    line = "def forward(self, x): return x + x"
    with pytest.raises(ProblemError, match=told) as caught:
        build_reference(model(FILE.format(line=line, inputs=inputs)))
    assert str(caught.value).startswith("m: ")
    assert "\n" not in str(caught.value)


def test_a_type_error_of_the_code_inside_is_told_as_such():
    with pytest.raises(ProblemError, match=r"^m: forward, line 7: TypeError: ") as caught:
        build_reference(forward("torch.relu(x, y=1)", "torch.rand(4)"))
    assert "get_inputs" not in str(caught.value)


def test_a_decorated_forward_is_called_as_it_is():
    line = "forward = scaled(lambda self, x, factor: x * factor)"
    reference = build_reference(model(FILE.format(line=line, inputs="torch.rand(4)")))
    assert reference.specs()[1][0].shape == (4,)


def test_an_error_behind_a_decorator_is_not_blamed_on_its_signature():
    line = "forward = scaled(lambda self, x, factor: x * factor + None)"
    with pytest.raises(ProblemError, match="TypeError: unsupported operand") as caught:
        build_reference(model(FILE.format(line=line, inputs="torch.rand(4)")))
    assert "get_inputs" not in str(caught.value)
