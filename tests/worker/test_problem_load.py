import pytest
import torch
from problem_files import attention, mask_mod, model

from hotloop.core.problem import Problem, ProblemKind
from hotloop.errors import ProblemError
from hotloop.worker.load import draw_buffers, install_buffers, load_problem

MODEL = """
N = 8
M = 2 * N
SHAPE = (N, M)
K, L = 3, 5
dtype = torch.float32

class Model(torch.nn.Module):
    def __init__(self, width=0):
        super().__init__()
    def forward(self, x):
        return x

def get_inputs():
    return [torch.zeros(SHAPE, dtype=dtype)]

def get_init_inputs():
    return [M]
"""

BUFFERS = """
def get_buffers(generator):
    return {"doc": torch.randint(5, (S,), generator=generator)}

def mask_mod(b, h, q_idx, kv_idx):
    return doc[q_idx] == doc[kv_idx]
"""


def test_model_fields():
    loaded = model(MODEL)
    assert loaded.init_args == (16,)
    assert loaded.model_class is loaded.namespace["Model"]
    assert loaded.get_inputs()[0].shape == (8, 16)
    assert loaded.sizes is None
    assert loaded.device == "cpu"


def test_settings_reach_whatever_is_derived_from_them():
    assert model(MODEL, N=4).get_inputs()[0].shape == (4, 8)
    assert model(MODEL, M=3).get_inputs()[0].shape == (8, 3)
    namespace = model(MODEL, L=7).namespace
    assert (namespace["K"], namespace["L"]) == (3, 7)
    assert model(MODEL, dtype="float16").get_inputs()[0].dtype == torch.float16


def test_a_workload_wins_over_the_problem():
    problem = Problem(
        name="m",
        kind=ProblemKind.KERNELBENCH,
        source="import torch\n" + MODEL,
        settings={"N": 2, "M": 5},
    )
    assert load_problem(problem, device="cpu").get_inputs()[0].shape == (2, 5)
    shape = load_problem(problem, device="cpu", settings={"N": 3}).get_inputs()[0].shape
    assert shape == (3, 5)


def test_attention_sizes():
    sizes = attention("Hkv = 2\nSkv = 2 * S\ndtype = torch.float16\nnormalize = 'sigmoid'\n").sizes
    assert sizes is not None
    assert (sizes.B, sizes.H, sizes.Hkv, sizes.S, sizes.Skv, sizes.D) == (2, 4, 2, 32, 64, 16)
    assert sizes.dtype == torch.float16
    assert sizes.normalize == "sigmoid"
    assert sizes.scale == 0.25
    sizes = attention("", S=64, Hkv=1, dtype="float32", scale=0.5).sizes
    assert sizes is not None
    assert (sizes.S, sizes.Skv, sizes.Hkv, sizes.scale) == (64, 64, 1, 0.5)
    assert sizes.dtype == torch.float32


def test_buffers_are_globals_drawn_by_seed():
    loaded = attention(BUFFERS)
    first, again, other = (draw_buffers(loaded, seed)["doc"] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    install_buffers(loaded, {"doc": torch.arange(32)})
    assert not loaded.mask_mod(0, 0, torch.tensor(1), torch.tensor(2))
    install_buffers(loaded, {"doc": torch.zeros(32)})
    assert loaded.mask_mod(0, 0, torch.tensor(1), torch.tensor(2))
    assert loaded.fixed_buffers == {}
    assert draw_buffers(attention(""), 0) == {}


def test_buffer_seed_is_read():
    assert attention(BUFFERS + "buffer_seed = 3\n").buffer_seed == 3
    assert attention(BUFFERS).buffer_seed is None


def test_captured_tensors_without_get_buffers_are_fixed():
    table = "table = torch.arange(4.0)\ndef helper(h):\n    return table[h] > 1\n"
    assert list(mask_mod("helper(h)", table).fixed_buffers) == ["table"]
    closure = """
def make(limit):
    def inner(b, h, q_idx, kv_idx):
        return q_idx < limit[h]
    return inner
mask_mod = make(torch.arange(4))
unused = torch.zeros(3)
"""
    loaded = attention(closure)
    assert list(loaded.fixed_buffers) == ["limit"]
    assert mask_mod("q_idx >= kv_idx").fixed_buffers == {}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = 1 / 0\n", "p: the file, line 3: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "p: the file, line 4: SystemExit: 3"),
        ("S = 0\n", "p line 3: S must be an int over 0, got 0"),
        ("D = 16.5\n", "p line 3: D must be an int over 0, got 16.5"),
        ("Hkv = 3\n", "p line 3: H must be a multiple of Hkv, got H 4, Hkv 3"),
        ("\ndtype = 'int8'\n", "p line 4: dtype is one of bfloat16, float16, float32, got 'int8'"),
        ("normalize = 'tanh'\n", "p line 3: normalize is softmax or sigmoid, got 'tanh'"),
        ("scale = 'big'\n", "p line 3: scale must be a finite number, got 'big'"),
        ("del D\n", "p: expected the size D, got none"),
        ("mask_mod = 3\n", "p: mask_mod must be a function, got 3"),
        ("buffer_seed = 'a'\n", "p: buffer_seed must be an int, got 'a'"),
        ("def get_buffers(g):\n    return [1]\n", "get_buffers\\(\\) must return a dict"),
        ("def get_buffers(g):\n    return {'a': 1}\n", "must map names to tensors, got 'a': int"),
        ("def get_buffers(g):\n    return g.x\n", "p: get_buffers\\(\\), line 4: AttributeError"),
    ],
)
def test_broken_attention_files_are_one_line_with_theirs(body, message):
    with pytest.raises(ProblemError, match=message) as info:
        attention(body)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (MODEL.replace("get_inputs", "inputs"), "m: expected a function get_inputs"),
        (MODEL.replace("class Model(torch.nn.Module)", "class Model"), "expected `class Model"),
        (MODEL.replace("class Model", "class Other"), "expected `class Model.*got nothing"),
        (MODEL.replace("return [M]", "return M"), "get_init_inputs\\(\\) must return a list"),
        (MODEL.replace("return [M]", "return [Q]"), "get_init_inputs\\(\\), line 19: NameError"),
        ("def f(:\n", "m: the file, line 2: SyntaxError"),
    ],
)
def test_broken_models_are_one_line_with_theirs(source, message):
    with pytest.raises(ProblemError, match=message) as info:
        model(source)
    assert "\n" not in str(info.value)


def test_a_setting_without_a_constant_is_refused():
    with pytest.raises(ProblemError, match="m: no constant to set: Z"):
        model(MODEL, Z=1)
