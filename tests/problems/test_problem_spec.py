from pathlib import Path

import pytest

from hotloop.core.problem import ProblemKind, Role
from hotloop.core.record import dumps
from hotloop.errors import ConfigError
from hotloop.problems import describe_sizes, load_problem_spec

MODEL = """
import torch
N = 64

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.rand(N)]

def get_init_inputs():
    return []
"""

CAUSAL = """
B, H, S, D = 4, 16, 4096, 128

def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "kind", "calls"),
    [
        (MODEL, ProblemKind.KERNELBENCH, "anchored"),
        (MODEL + "workloads = [{'N': 100}]\n", ProblemKind.NATIVE, "anchored"),
        (CAUSAL, ProblemKind.ATTENTION, "none"),
        ("B, H, S, D = 1, 2, 64, 32\n", ProblemKind.ATTENTION, "none"),
    ],
)
def test_kind_and_policy_follow_from_the_file(tmp_path, text, kind, calls):
    problem = load_problem_spec(write(tmp_path, "p.py", text), device="cuda")
    assert problem.kind is kind
    assert problem.policy.library_calls == calls
    assert problem.policy.precision == "as_shipped"
    assert problem.source == text


def test_the_file_is_not_run(tmp_path):
    path = write(tmp_path, "p.py", MODEL + "raise RuntimeError('ran')\n")
    assert load_problem_spec(path, device="cuda").kind is ProblemKind.KERNELBENCH


def test_name_has_the_folder_only_for_attention(tmp_path):
    inside = write(tmp_path, "attention/causal.py", CAUSAL)
    outside = write(tmp_path, "other/causal.py", CAUSAL)
    assert load_problem_spec(inside, device="cuda").name == "attention/causal"
    assert load_problem_spec(outside, device="cuda").name == "causal"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.py", "x = 1\n", "expected a problem and found none"),
        ("p.py", "def f(:\n", "p.py line 1: no valid Python"),
        ("p.cu", "", "expected a file ending in .py, .txt or .md, got '.cu'"),
        ("p.py", CAUSAL.replace("B, H, S, D = 4, 16, 4096, 128", "B, H, S = 1, 1, 8"), "missing D"),
        ("p.py", CAUSAL + "grad = ['q']\n", "backward passes are not in this version"),
        ("p.py", CAUSAL + "workloads = []\n", "attention files have no `workloads`"),
        ("p.py", MODEL + "grad = ['x']\n", "line 14: backward passes are not in this version"),
    ],
)
def test_bad_files_are_refused_in_one_line(tmp_path, name, text, message):
    with pytest.raises(ConfigError, match=message) as info:
        load_problem_spec(write(tmp_path, name, text), device="cuda")
    assert "\n" not in str(info.value)


def test_missing_file_and_unknown_device(tmp_path):
    with pytest.raises(ConfigError, match="there is no such file"):
        load_problem_spec(tmp_path / "none.py", device="cuda")
    with pytest.raises(ConfigError, match="expected the device cuda or cpu, got 'tpu'"):
        load_problem_spec(write(tmp_path, "p.py", CAUSAL), device="tpu")


def test_settings_are_carried_and_change_the_id(tmp_path):
    path = write(tmp_path, "p.py", MODEL)
    plain = load_problem_spec(path, device="cuda")
    larger = load_problem_spec(path, device="cuda", settings={"N": 128})
    assert larger.settings == {"N": 128}
    assert larger.id != plain.id
    assert plain.id == load_problem_spec(path, device="cuda").id


def test_missing_size_may_be_set(tmp_path):
    path = write(tmp_path, "p.py", "B, H, S = 1, 2, 8\nscore_mod = None\n")
    assert load_problem_spec(path, device="cuda", settings={"D": 64}).settings == {"D": 64}


def test_without_a_gpu_large_attention_gets_small_sizes(tmp_path):
    path = write(tmp_path, "p.py", "Hkv = 4\n" + CAUSAL)
    problem = load_problem_spec(path, device="cpu", settings={"S": 64})
    (workload,) = problem.workloads
    assert workload.role is Role.NOMINAL
    assert workload.settings == {}, "4 x 16 x 64 x 64 scores are few"
    problem = load_problem_spec(path, device="cpu", settings={"S": 8192})
    assert problem.workloads[0].settings == {"B": 1, "H": 4, "Hkv": 1}, "S was asked for"
    problem = load_problem_spec(path, device="cpu")
    assert problem.workloads[0].settings == {"B": 1, "H": 4, "S": 128, "Hkv": 1}
    assert load_problem_spec(path, device="cuda").workloads[0].settings == {}


def test_sizes_are_described(tmp_path):
    path = write(tmp_path, "p.py", CAUSAL + "Skv = 2 * S\ndtype = 'float16'\n")
    assert describe_sizes(load_problem_spec(path, device="cuda")) == (
        "B 4, H 16, S 4096, Skv 8192, D 128, float16"
    )
    line = describe_sizes(load_problem_spec(path, device="cpu"))
    assert line.startswith("B 1, H 2, S 128, Skv 256, D 128, float16")
    assert "the problem states B 4, H 16, S 4096, Skv 8192" in line
    path = write(tmp_path, "m.py", MODEL)
    assert describe_sizes(load_problem_spec(path, device="cpu", settings={"N": 3})) == "N 3"


def test_a_problem_survives_json(tmp_path):
    problem = load_problem_spec(write(tmp_path, "p.py", CAUSAL), device="cpu")
    assert '"kind":"attention"' in dumps(problem)
