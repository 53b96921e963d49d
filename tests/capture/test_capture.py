"""A live function or module becomes a file that computes the same; what has no text is named."""

import sys

import pytest
import torch
from torch import nn

import hotloop
from hotloop.capture.problem import capture, problem_source
from hotloop.errors import ConfigError

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import live_subjects as live


def module_of(source):
    space = {"__name__": "captured"}
    exec(compile(source, "captured.py", "exec"), space)
    return space


def same_as(subject, inputs, init=None):
    """Build the captured file's model and compare it with the live one on the same values."""
    space = module_of(problem_source(subject, inputs, init))
    model = space["Model"](*space["get_init_inputs"]())
    if isinstance(subject, nn.Module):
        model.load_state_dict(subject.state_dict())
    drawn = space["get_inputs"]()
    assert [getattr(v, "shape", v) for v in drawn] == [getattr(v, "shape", v) for v in inputs]
    assert [getattr(v, "dtype", v) for v in drawn] == [getattr(v, "dtype", v) for v in inputs]
    torch.testing.assert_close(model(*inputs), subject(*inputs), rtol=0, atol=0)
    return space


def test_a_function_brings_all_that_it_names():
    space = same_as(live.gated, [torch.randn(3, 4), torch.rand(3, 4)])
    assert space["LIMITS"] == live.LIMITS


def test_a_module_finds_out_how_it_was_built():
    same_as(live.Block(6), [torch.randn(2, 6)])
    same_as(live.Block(6, hidden=3), [torch.randn(2, 6)])


def test_a_subclass_brings_its_base():
    same_as(live.Nested(5), [torch.randn(2, 5)])


def test_modules_of_torch_are_imported():
    same_as(nn.LayerNorm(8), [torch.randn(2, 8)], init=[8])
    same_as(nn.Softmax(dim=1), [torch.randn(2, 8)])


def test_a_class_is_built_from_init():
    space = module_of(problem_source(live.Block, [torch.randn(2, 6)], [6, 2]))
    assert space["Model"](*space["get_init_inputs"]()).up.weight.shape == (2, 6)


def test_closures_are_constants():
    def outer(factor):
        def inner(x):
            return x * factor

        return inner

    same_as(outer(3.5), [torch.randn(4)])


@pytest.mark.parametrize(
    "values",
    [
        torch.randint(-3, 9, (64,)),
        torch.rand(64) < 0.5,
        torch.rand(64, dtype=torch.float64) * 3,
        torch.randn(64).bfloat16(),
        torch.zeros(8),
    ],
    ids=["integers", "booleans", "positive", "bfloat16", "zeros"],
)
def test_inputs_are_drawn_anew_in_the_range_of_the_example(values):
    space = module_of(problem_source(live.squash, [values]))
    first, second = space["get_inputs"]()[0], space["get_inputs"]()[0]
    assert (first.dtype, first.shape) == (values.dtype, values.shape)
    assert not torch.equal(first, second)
    if values.min() >= 0 and values.any():
        assert first.min() >= 0
        assert first.max() < 2 * values.max()


def test_other_arguments_stay_as_they_are():
    space = module_of(problem_source(live.gated, [torch.randn(2), 3]))
    assert space["get_inputs"]()[1] == 3


@pytest.mark.parametrize(
    ("subject", "inputs", "init", "told"),
    [
        (lambda x: x, [torch.ones(2)], None, "lambda"),
        (torch.softmax, [torch.ones(2)], None, "wrap it in a function"),
        (live.looks_up, [torch.ones(4)], None, "TABLE is a Tensor.*pass it as an argument"),
        (live.flexible, [torch.ones(4)], None, "name the arguments"),
        (live.keyword_only, [torch.ones(4)], None, "give it a default"),
        (live.Forgetful(4), [torch.ones(4)], None, "size.*give init"),
        (live.Forgetful(4), [torch.ones(4)], [5], "other parameters.*give init"),
        (live.Forgetful(4), [torch.ones(4)], [1, 2, 3], "fails.*give init"),
        (live.squash, [torch.ones(4)], [1], "only a module"),
        (live.squash, torch.ones(4), None, "expected a list"),
        (live.squash, [torch.ones(4).to_sparse()], None, "dense"),
        (live.squash, [torch.ones(4, 2).T], None, "contiguous"),
        (live.squash, [torch.ones(0)], None, "empty"),
        (live.squash, [object()], None, r"inputs\[0\]"),
        (3, [torch.ones(4)], None, "expected a function"),
    ],
)
def test_what_cannot_be_written_down_is_one_clear_line(subject, inputs, init, told):
    with pytest.raises(ConfigError, match=told) as error:
        problem_source(subject, inputs, init)
    assert len(str(error.value).splitlines()) == 1


def test_a_function_without_source_says_so():
    space = {}
    exec("def typed(x):\n    return x + 1\n", space)
    with pytest.raises(ConfigError, match="no source"):
        problem_source(space["typed"], [torch.ones(2)])


def test_the_captured_problem_is_a_problem():
    problem = capture(live.gated, [torch.randn(64, 8), torch.rand(64, 8)], device="cpu")
    assert problem.name == "gated"
    again = capture(live.gated, [torch.randn(64, 8), torch.rand(64, 8)], device="cpu")
    assert again.id == problem.id  # other random examples are the same problem
    other = capture(live.gated, [torch.randn(64, 9), torch.rand(64, 9)], device="cpu")
    assert other.id != problem.id


def test_the_front_door_names_what_is_missing(tmp_path):
    with pytest.raises(ConfigError, match="inputs: expected"):
        hotloop.optimize(live.squash, out=tmp_path, device="cpu")
    with pytest.raises(ConfigError, match="a problem file has its own"):
        hotloop.optimize("problem.py", [torch.ones(2)], out=tmp_path, device="cpu")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_live_function_is_verified_and_optimized(tmp_path):
    kernel = tmp_path / "kernel.py"
    kernel.write_text(
        "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"
        "def squash(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    x = tl.load(x_ptr + at, mask=at < n, other=0.0)\n"
        "    y = tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(tl.minimum(x, 20.0))))\n"
        "    tl.store(out_ptr + at, y * 0.5, mask=at < n)\n\n\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        "        out = torch.empty_like(x)\n"
        "        squash[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)\n"
        "        return out\n"
    )
    verdict = hotloop.verify(live.squash, kernel, [torch.randn(100)], device="cpu")
    assert verdict.status is not hotloop.Status.RUNTIME_ERROR
    result = hotloop.optimize(
        live.squash, [torch.randn(4, 100)], device="cpu", budget="60s", out=tmp_path / "run",
        max_candidates=2,
    )  # fmt: skip
    assert result.passed
