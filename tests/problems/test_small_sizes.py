"""Sizes for an interpreter, and the line that suggests them."""

from pathlib import Path

import pytest

from hotloop.cli.interpreter_notice import interpreter_notice, with_interpreter_notice
from hotloop.core.event import Event
from hotloop.core.problem import ProblemInfo, TensorSpec
from hotloop.problems import count_elements, load_problem_spec, suggest_small_sizes
from hotloop.testing.fakes import RecordingListener

EXAMPLES = Path(__file__).parents[2] / "examples"


def tensors(*shapes):
    return tuple(
        TensorSpec(name=f"t{i}", shape=shape, dtype="float32", strides=(1,) * len(shape))
        for i, shape in enumerate(shapes)
    )


def info(inputs, parameters=(), device="cpu"):
    return ProblemInfo(
        problem_id="p", device=device, inputs=tensors(*inputs), outputs=(),
        parameters=tensors(*parameters), graph=None, attention=None, flops=None, io_bytes=0,
        rankable=True,
    )  # fmt: skip


CASES = {
    "row_softmax": (info([(4096, 4096)]), {"ROWS": 64, "COLUMNS": 64}),
    "layer_norm": (info([(4096, 2048)], [(2048,), (2048,)]), {"ROWS": 64}),
    "linear_relu": (info([(2048, 1024)], [(2048, 1024), (2048,)]), {"M": 64, "N": 64}),
}


def example(name, **settings):
    return load_problem_spec(EXAMPLES / f"{name}.py", device="cpu", settings=settings)


@pytest.mark.parametrize("name", CASES)
def test_large_examples_get_a_suggestion_that_can_be_set(name):
    loaded, expected = CASES[name]
    assert suggest_small_sizes(example(name), loaded) == expected
    line = interpreter_notice(example(name), loaded)
    assert "--set " + ",".join(f"{k}={v}" for k, v in expected.items()) in line
    assert "\n" not in line
    example(name, **expected)  # a name that the file does not have would be refused


def test_small_inputs_and_gpus_get_no_line():
    small = info([(64, 4096)])
    assert count_elements(small) == 64 * 4096
    assert suggest_small_sizes(example("row_softmax", ROWS=64), small) == {}
    assert interpreter_notice(example("row_softmax", ROWS=64), small) is None
    on_gpu = info([(4096, 4096)], device="cuda")
    assert interpreter_notice(example("row_softmax"), on_gpu) is None


def test_of_attention_only_sequences_shrink():
    problem = example("attention/relative", S=8192, H=4)
    loaded = info([(1, 4, 8192, 128)] * 3)
    assert suggest_small_sizes(problem, loaded) == {"S": 64}


def test_without_a_constant_to_set_the_line_says_what_to_do():
    loaded = info([(3000, 3000)])
    assert suggest_small_sizes(example("row_softmax"), loaded) == {}
    assert "smaller" in interpreter_notice(example("row_softmax"), loaded)


@pytest.mark.parametrize(("rows", "kinds"), [(4096, ["setup", "warning"]), (8, ["setup"])])
def test_the_line_comes_behind_the_loaded_problem(rows, kinds):
    heard = RecordingListener()
    listen = with_interpreter_notice(example("row_softmax"), heard)
    listen(Event(kind="setup", payload={"info": info([(rows, 4096)])}))
    assert heard.kinds() == kinds
