"""Candidates in CUDA C++ on a machine without a GPU: compiled, reported, never scored for it.

`test_cuda_host.py` runs them on a GPU.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from scaled_rows import candidate, cuda, triton, verdict

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Stage, Status
from hotloop.errors import ToolMissing
from hotloop.verify import LocalVerifier
from hotloop.worker import build_cuda

has_compiler = shutil.which("nvcc") is not None or Path("/usr/local/cuda/bin/nvcc").exists()
needs_compiler = pytest.mark.skipif(not has_compiler, reason="nvcc is not installed")
EXAMPLE = Path(__file__).parents[2] / "examples" / "cuda" / "row_softmax.cu"

LOAD_INLINE = """
import torch
from torch.utils.cpp_extension import load_inline

module = load_inline(name="scaled", cpp_sources="", cuda_sources="", functions=[])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return module.scaled(x)
"""


@needs_compiler
def test_kernels_are_compiled_and_reported(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, cuda())
    assert (found.status, found.stage) == (Status.COMPILED_ONLY, Stage.COMPILE)
    assert found.evidence is not None
    assert found.evidence.kind == "needs_gpu"
    assert "needs a GPU" in found.message
    assert (found.correctness, found.performance) == (None, None)
    assert [(k.name, k.num_warps) for k in found.resources] == [("multiply", 8), ("add", 8)]
    assert all(k.registers and k.spill_bytes == 0 for k in found.resources)


@needs_compiler
def test_compile_error_has_the_line_of_the_file(cpu_judge: LocalVerifier) -> None:
    kernel = cuda(("y[i] = scaled[i] + amount;", "y[i] = scaled[i] + amuont;"))
    found = verdict(cpu_judge, kernel)
    assert found.status is Status.COMPILE_ERROR
    assert found.evidence is not None
    line = int(found.evidence.details["line"])
    assert "amuont" in kernel.text().splitlines()[line - 1]
    assert found.message.startswith(f'kernel.cu:{line}: identifier "amuont" is undefined')


@needs_compiler
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (('"args": ["x", "scale", "scaled", ', '"args": ["x", "scaled", '), "multiply takes 5"),
        (('{"int64": "N"}', '"N"'), r"passes 4 of [8, 8, 4, 4]"),
        (('"N": "ROWS * COLUMNS"', '"N": "ROWS * HEADS"'), "unknown name 'HEADS'"),
        (('"scale": ["COLUMNS"]', '"weight": ["COLUMNS"]'), "the reference has scale"),
    ],
)
def test_description_that_does_not_fit_is_the_candidates_fault(
    cpu_judge: LocalVerifier, change: tuple[str, str], text: str
) -> None:
    found = verdict(cpu_judge, cuda(change))
    assert found.status is Status.COMPILE_ERROR
    assert found.evidence is not None
    assert found.evidence.kind == "contract"
    assert text in found.message


@pytest.mark.skipif(torch.version.cuda is not None, reason="this torch builds CUDA extensions")
def test_missing_compiler_is_the_machines_fault(cpu_judge: LocalVerifier) -> None:
    source = SourceFile(path="kernel.py", text=LOAD_INLINE)
    extension = Candidate(language="cuda", sources=(source,))
    for _ in range(2):  # nothing of it is kept: a machine can be mended
        with pytest.raises(ToolMissing, match="torch built for CUDA"):
            cpu_judge.build(extension)
    cpu_judge.build(triton())
    assert verdict(cpu_judge, triton()).status is Status.PASSED


@needs_compiler
def test_readable_example_compiles_without_spills(tmp_path: Path) -> None:
    path = shutil.copy(EXAMPLE, tmp_path)
    x = {"shape": [4096, 4096], "dtype": "float32"}
    answer = build_cuda.build(Path(path), {"inputs": [x], "state": {}})
    assert answer["status"] == "ok"
    (kernel,) = answer["kernels"]
    assert (kernel["grids"], kernel["spill_bytes"]) == ([[4096, 1, 1]], 0)
    assert 0 < kernel["shared_bytes"] - 4 * 4096 <= 1024  # the row, and the reductions' parts


def test_a_text_without_a_description_is_refused(cpu_judge: LocalVerifier) -> None:
    found = verdict(cpu_judge, candidate("__global__ void f() {}\n", "kernel.cu"))
    assert found.status is Status.COMPILE_ERROR
    assert "begin with a /* { ... } */ launch description" in found.message
