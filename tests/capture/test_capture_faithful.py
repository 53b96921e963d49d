"""What is captured is what runs: no name, state, mode or range is taken for another."""

import copy
import importlib
import sys

import pytest
import torch
from torch import nn

from hotloop.capture.problem import problem_source
from hotloop.errors import ConfigError

sys.path.insert(0, __file__.rsplit("/", 1)[0])
import live_twins as twins

ROW = torch.linspace(-2, 2, 4)


def built(subject, inputs, init=None):
    space = {"__name__": "captured"}
    exec(compile(problem_source(subject, inputs, init), "captured.py", "exec"), space)
    return space, space["Model"](*space["get_init_inputs"]())


def refusal(subject, inputs, init=None):
    with pytest.raises(ConfigError) as error:
        problem_source(subject, inputs, init)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize("name", ["merged", "both_rounds", "inner_global", "names_workloads"])
def test_a_name_with_two_meanings_is_refused(name):
    told = {"inner_global": "grid is a Tensor", "names_workloads": "for itself"}
    assert told.get(name, "stands for two things") in refusal(getattr(twins, name), [ROW])


@pytest.mark.parametrize(
    "name", ["lone_alias", "own_round", "only_nearest", "local_names", "decorated"]
)
def test_a_name_means_what_it_means_where_it_stands(name):
    function = getattr(twins, name)
    assert torch.equal(built(function, [ROW])[1](ROW), function(ROW))


def test_a_closure_comes_before_a_global():
    def outer(grid):
        def inner(x):
            return x * grid

        return inner

    assert torch.equal(built(outer(3.0), [ROW])[1](ROW), ROW * 3)


def changed(module):
    module.act = nn.GELU()
    return module


def hooked(module):
    module.register_forward_hook(lambda m, args, out: {**out, "y": out["y"] + 1})
    return module


@pytest.mark.parametrize(
    ("subject", "inputs", "told"),
    [
        (twins.Doubled(3.0), [ROW], "something else.*init="),
        (changed(twins.Active(4)), [torch.randn(8, 4)], "something else.*init="),
        (hooked(twins.Active(4)), [torch.randn(8, 4)], "something else.*init="),
        (twins.Active(4).half(), [torch.randn(8, 4)], "float16.*float32.*convert inside"),
        (twins.Active(4).to("meta"), [torch.randn(8, 4)], "meta"),
        (twins.Active(4), [torch.randn(8, 5)], "fails on these inputs"),
    ],
    ids=["doubled", "changed", "hooked", "half", "meta", "failing"],
)
def test_an_instance_that_its_constructor_does_not_build_is_refused(subject, inputs, told):
    with pytest.raises(ConfigError, match=told) as error:
        problem_source(subject, inputs)
    assert len(str(error.value).splitlines()) == 1


def test_the_same_instance_is_taken_with_the_arguments_that_build_it():
    _, model = built(twins.Doubled(3.0), [ROW], init=[3.0])
    assert torch.equal(model(ROW), ROW * 6)


def test_an_instance_that_differs_from_itself_is_not_compared():
    assert "class Restless" in problem_source(twins.Restless(1.0), [ROW])


def test_a_trained_instance_is_compared_and_left_as_it_was():
    module, inputs = twins.Active(4), torch.randn(8, 4)
    module(inputs)
    before, values, random = (
        copy.deepcopy(module.state_dict()),
        inputs.clone(),
        torch.get_rng_state(),
    )
    problem_source(module, [inputs])
    assert all(torch.equal(before[key], value) for key, value in module.state_dict().items())
    assert torch.equal(inputs, values)
    assert torch.equal(random, torch.get_rng_state())


@pytest.mark.parametrize("cls", [twins.Active, twins.Model, nn.Softmax])
@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_an_instance_is_kept(cls, training):
    module = {twins.Active: lambda: cls(4), nn.Softmax: lambda: cls(dim=1)}.get(cls, cls)()
    model = built(module.train(training), [torch.randn(8, 4)])[1]
    assert {part.training for part in model.modules()} == {training}


def test_a_mixed_mode_is_refused():
    module = twins.Active(4)
    module.norm.eval()
    assert "some of its modules train" in refusal(module, [torch.randn(8, 4)])


def drawn(values):
    return built(twins.lone_alias, [values])[0]["get_inputs"]()[0]


@pytest.mark.parametrize(
    ("largest", "dtype", "bound"),
    [
        (0.2, torch.float32, 0.25),
        (0.25, torch.float32, 0.25),
        (100.0, torch.float32, 128.0),
        (1e-6, torch.float64, 2.0**-19),
        (60000.0, torch.float16, 65504.0),
        (torch.finfo(torch.float64).max, torch.float64, torch.finfo(torch.float64).max),
    ],
)
def test_signed_floats_keep_their_range(largest, dtype, bound):
    values = drawn(torch.tensor([-largest, largest / 2], dtype=dtype).repeat(200))
    assert values.dtype is dtype
    assert bound / 2 < values.abs().max() <= bound
    assert values.min() < 0 < values.max()
    positive = drawn(torch.full((400,), largest, dtype=dtype))
    assert bound / 2 < positive.max() <= bound
    assert positive.min() >= 0


@pytest.mark.parametrize("largest", [1.0, 3.0, 8.0])
def test_what_looks_standard_normal_is(largest):
    values = drawn(torch.tensor([-largest, 0.1]).repeat(2000))
    assert 0.9 < values.std() < 1.1


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8])
def test_integers_to_the_edge(dtype):
    most = torch.iinfo(dtype).max - (dtype is torch.int64)
    values = drawn(torch.full((3,), most, dtype=dtype))
    assert (values == most).all()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (torch.ones(4).to(torch.float8_e4m3fn), "float8_e4m3fn.*convert inside"),
        (torch.ones(4, dtype=torch.uint16), "uint16.*convert inside"),
        (torch.ones(4, device="meta"), "without values"),
        (torch.tensor([1.0, float("nan")]), "NaN or infinity"),
        (torch.tensor([1.0, float("-inf")]), "NaN or infinity"),
        (torch.tensor([2**63 - 1]), "largest int64"),
        ([torch.ones(4)], "without tensors, got a list"),
    ],
)
def test_inputs_that_cannot_be_drawn_are_one_clear_line(value, told):
    with pytest.raises(ConfigError, match=told) as error:
        problem_source(twins.lone_alias, [value])
    assert len(str(error.value).splitlines()) == 1


def imported(folder, name, text):
    (folder / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def test_an_edited_file_is_refused_and_an_unchanged_one_is_not(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = (
        "import torch\nimport torch.nn.functional as F\n\n\n"
        "def f(x):\n    '''Doubles.'''\n    return F.relu(x) * 2\n\n\n"
        "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n\n"
        "    def forward(self, x):\n        return f(x) - 1\n"
    )
    live = imported(tmp_path, "edited_subject", text)
    path = tmp_path / "edited_subject.py"
    assert torch.equal(built(live.f, [ROW])[1](ROW), live.f(ROW))
    assert torch.equal(built(live.Net, [ROW])[1](ROW), live.Net()(ROW))
    for old, new in (("* 2", "* 3"), ("def f(x)", "def g(x): return x\ndef f(x)"), (")\n", "\n")):
        path.write_text(text.replace(old, new))
        assert "edited" in refusal(live.f, [ROW])
    path.write_text(text.replace("- 1", "- 4"))
    assert "edited" in refusal(live.Net, [ROW])
    assert torch.equal(built(live.f, [ROW])[1](ROW), live.f(ROW))


@pytest.mark.parametrize("has_metadata", [True, False])
def test_pythonpath_is_what_the_judge_has_too(tmp_path, monkeypatch, has_metadata):
    name = f"path_package_{has_metadata}".lower()
    if has_metadata:  # as `pip install --target` leaves it
        (tmp_path / f"{name}-1.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    package = imported(tmp_path, name, "def plus(x):\n    return x + 1\n")
    user = imported(
        tmp_path, f"user_of_{name}",
        f"import {name}\nfrom {name} import plus\n\n\n"
        f"def f(x):\n    return {name}.plus(x)\n\n\ndef g(x):\n    return plus(x)\n",
    )  # fmt: skip
    if not has_metadata:
        assert "of your own" in refusal(user.f, [ROW])
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for function in (user.f, user.g):
        assert torch.equal(built(function, [ROW])[1](ROW), package.plus(ROW))
    assert ("def plus" in problem_source(user.g, [ROW])) is not has_metadata
    monkeypatch.setenv("PYTHONPATH", "relative")
    assert "of your own" in refusal(user.f, [ROW])


def test_torch_is_never_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "__file__", str(tmp_path / "torch" / "__init__.py"))
    assert "import torch" in problem_source(twins.lone_alias, [ROW])
