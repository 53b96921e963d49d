"""The `best/` folder of a paged decode step: its test lays k and v out as the kernel reads them."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.graph import AttentionSpec
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind, TensorSpec
from hotloop.core.verdict import Stage, Status, Tier, Verdict
from hotloop.report.best import BestResult, render_best, write_best
from hotloop.templates.decode.family import DecodeFamily

SPEC = AttentionSpec(
    B=2, H=4, Hkv=2, S=1, Skv=64, D=16, dtype="float32", scale=0.25, page_size=16, pages=11
)
SOURCE = 'B, H, Hkv, S, Skv, D = 2, 4, 2, 1, 64, 16\ndtype = "float32"\npage_size = 16\n'
READS_TABLE = "tl.load(page_table_ptr + tl.minimum(key // PAGE_SIZE, PAGES_A_BATCH - 1))"


def result(text, spec=SPEC):
    problem = Problem(name="decode", kind=ProblemKind.ATTENTION, source=SOURCE)
    shapes = {"q": (2, 4, 1, 16), "k": (11, 2, 16, 16), "v": (11, 2, 16, 16)}
    inputs = tuple(
        TensorSpec(name=n, shape=s, dtype="float32", strides=()) for n, s in shapes.items()
    )
    info = ProblemInfo(
        problem_id=problem.id, device="cpu", inputs=inputs, outputs=inputs[:1], parameters=(),
        graph=None, attention=spec, flops=None, io_bytes=0, rankable=True,
    )  # fmt: skip
    candidate = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))
    verdict = Verdict(
        status=Status.PASSED, stage=Stage.CORRECTNESS, message="ok", candidate_id=candidate.id,
        problem_id=problem.id, tier=Tier.FAST, device="cpu",
    )  # fmt: skip
    return BestResult(
        problem=problem, info=info, candidate=candidate, verdict=verdict,
        verify_command="hotloop verify decode.py kernel.py", search_command="hotloop optimize",
    )  # fmt: skip


def kernel():
    family = DecodeFamily(SPEC)
    return family.render(family.space().starts[0]).text()


def passed(folder):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py"],
        capture_output=True, text=True, timeout=100, cwd=folder,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    return done.stdout


def test_pages_stand_in_the_files_of_a_paged_problem_alone():
    files = render_best(result(kernel()))
    compile(files["benchmark.py"], "benchmark.py", "exec")
    assert "BUFFERS = ['page_table']" in files["test_kernel.py"]
    assert "to_pages" in files["benchmark.py"]
    plain = render_best(result(kernel(), replace(SPEC, page_size=None, pages=None)))
    assert not any("page" in plain[name] for name in ("test_kernel.py", "benchmark.py"))


@pytest.mark.slow
def test_the_generated_test_passes_a_right_kernel_and_fails_one_without_the_table(tmp_path):
    right = write_best(tmp_path / "right", result(kernel()))
    assert "4 passed" in passed(right)
    blind = kernel().replace(
        READS_TABLE, "tl.program_id(1) // H_KV * PAGES_A_BATCH + key // PAGE_SIZE"
    )
    assert blind != kernel()
    assert "4 failed" in passed(write_best(tmp_path / "wrong", result(blind)))
