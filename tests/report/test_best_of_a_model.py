"""What a model writes that a template does not: companions, CUDA, names that clash with ours."""

import ast
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind, TensorSpec
from hotloop.core.verdict import Stage, Status, Tier, Verdict
from hotloop.report.best import BestResult, render_best, result_line, write_best

CASES = Path(__file__).with_name("cases")
MODEL = "deepseek:deepseek-v4-pro"
KERNEL = """\
import torch
from problem import twice

TUNABLES = {"BLOCK": [64, 128]}
BLOCK = 64


class ModelNew(torch.nn.Module):
    def __init__(self, *args):
        super().__init__()
        assert twice(BLOCK) == 256
"""


def candidate(*files, language="triton", **more):
    sources = tuple(SourceFile(path=path, text=text) for path, text in files)
    return Candidate(language=language, sources=sources, **more)


def result_of(kernel, **more):
    source = (CASES / "bias_relu.py").read_text()
    problem = Problem(name="bias_relu", kind=ProblemKind.KERNELBENCH, source=source)
    tensor = TensorSpec(name="x", shape=(1024, 64), dtype="float32", strides=())
    info = ProblemInfo(
        problem_id=problem.id, device="cpu", inputs=(tensor,), outputs=(tensor,), parameters=(),
        graph=None, attention=None, flops=None, io_bytes=0, rankable=True,
    )  # fmt: skip
    verdict = Verdict(
        status=Status.PASSED, stage=Stage.CORRECTNESS, message="", candidate_id=kernel.id,
        problem_id=problem.id, tier=Tier.FAST, device="cpu",
    )  # fmt: skip
    return BestResult(
        problem=problem, info=info, candidate=kernel, verdict=verdict, verify_command="hotloop v",
        search_command="hotloop o", **more,
    )  # fmt: skip


HELPED = candidate(
    ("kernel.py", KERNEL), ("problem.py", "def twice(x):\n    return 2 * x\n"),
    pins={"BLOCK": 128},
)  # fmt: skip


def test_the_result_line_names_the_model_and_only_where_there_is_one():
    found = result_of(HELPED, model=MODEL)
    assert f"found with the model {MODEL}" in result_line(found.verdict, model=MODEL)
    assert MODEL in render_best(found)["README.md"]
    assert "model" not in result_line(found.verdict)


def test_companions_keep_their_names_and_ours_give_way():
    files = render_best(result_of(HELPED))
    assert files["problem.py"].startswith("def twice")
    assert "class Model(" in files["hotloop_problem.py"]
    assert 'load("hotloop_problem.py")' in files["test_kernel.py"]
    assert "`hotloop_problem.py` | the reference" in files["README.md"]
    assert "`problem.py` | belongs to the kernel" in files["README.md"]


def test_without_a_clash_our_files_have_their_usual_names():
    files = render_best(result_of(candidate(("kernel.py", "x = 1\n"))))
    assert set(files) == {
        "kernel.py", "problem.py", "test_kernel.py", "benchmark.py", "verdict.json", "README.md",
    }  # fmt: skip


@pytest.mark.slow
def test_the_kernel_finds_its_companions_and_its_pins(tmp_path):
    kernel = replace(
        HELPED,
        sources=(
            SourceFile(
                path="kernel.py",
                text=(CASES / "bias_relu_kernel.py").read_text()
                + "\nfrom problem import twice\n\nBLOCK = 64\n",
            ),
            HELPED.sources[1],
        ),
    )
    folder = write_best(tmp_path / "best", result_of(kernel))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider",
         "test_kernel.py"],
        cwd=folder, capture_output=True, text=True, timeout=100,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-2000:]
    shown = subprocess.run(
        [sys.executable, "-c", "import kernel; print(kernel.twice(kernel.BLOCK))"],
        cwd=folder, capture_output=True, text=True, timeout=100,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1"},
    )  # fmt: skip
    assert shown.stdout == "256\n", shown.stderr


def test_cuda_source_is_exported_as_it_is_without_a_pytest_file():
    text = '// {}\nextern "C" __global__ void f() {}\n'
    kernel = candidate(("kernel.cu", text), language="cuda", entry="kernel.cu")
    files = render_best(result_of(kernel, model=MODEL))
    assert files["kernel.cu"] == text
    assert "test_kernel.py" not in files
    assert "launch description" in files["README.md"]
    assert "pytest" not in files["README.md"]


def test_cuda_in_python_is_tested_on_a_gpu_only():
    kernel = candidate(("kernel.py", "import torch\n"), language="cuda")
    test = render_best(result_of(kernel))["test_kernel.py"]
    ast.parse(test)
    assert "INTERPRETABLE = False" in test
    triton = render_best(result_of(replace(kernel, language="triton")))["test_kernel.py"]
    assert "INTERPRETABLE = True" in triton
