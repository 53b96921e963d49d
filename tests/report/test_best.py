import ast
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.graph import AttentionSpec, BufferSpec, Graph
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind, Role, TensorSpec, Workload
from hotloop.core.record import from_json
from hotloop.core.verdict import Performance, Stage, Status, Tier, Verdict
from hotloop.report.best import BestResult, render_best, write_best

CASES = Path(__file__).with_name("cases")


def case(name):
    return (CASES / f"{name}.py").read_text()


RELATIVE_KERNEL = case("relative_kernel")
FORGETFUL_KERNEL = RELATIVE_KERNEL.replace("score += (i - j)", "score += 0 * (i - j)")
LINEAR_KERNEL = case("bias_relu_kernel").replace("tl.maximum(y, 0.0)", "y")
EMPTY = Graph(nodes=(), outputs=())


def spec(name, shape, dtype="float32"):
    return TensorSpec(name=name, shape=shape, dtype=dtype, strides=())


def info_of(problem, *, attention=None, tensors=()):
    return ProblemInfo(
        problem_id=problem.id, device="cpu", inputs=tensors, outputs=tensors[:1], parameters=(),
        graph=None, attention=attention, flops=None, io_bytes=0, rankable=True,
    )  # fmt: skip


def attention_info(problem, *, dtype="float32", masked=False, S=32):
    sizes = AttentionSpec(
        B=1, H=2, Hkv=1 if masked else 2, S=S, Skv=S, D=16, dtype=dtype, scale=0.25,
        score_mod=None if masked else EMPTY, mask_mod=EMPTY if masked else None,
        buffers=(BufferSpec(name="doc", shape=(S,), dtype="int64"),) if masked else (),
    )  # fmt: skip
    shape = (1, 2, S, 16)
    return info_of(problem, attention=sizes, tensors=(spec("q", shape, dtype),))


def result_of(source, kernel, *, kind=ProblemKind.ATTENTION, info=None, performance=None, **more):
    problem = Problem(name="attention/relative", kind=kind, source=source, **more)
    candidate = Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=kernel),))
    verdict = Verdict(
        status=Status.PASSED, stage=Stage.CORRECTNESS, message="ok", candidate_id=candidate.id,
        problem_id=problem.id, tier=Tier.FAST, device="cuda" if performance else "cpu",
        performance=performance,
    )  # fmt: skip
    return BestResult(
        problem=problem, info=info(problem), candidate=candidate, verdict=verdict,
        verify_command="hotloop verify relative.py kernel.py",
        search_command="hotloop optimize relative.py --seed 3",
    )  # fmt: skip


def relative(kernel, **more):
    return result_of(case("relative"), kernel, info=attention_info, **more)


def model(kernel):
    def info(problem):
        return info_of(problem, tensors=(spec("x", (1024, 64)),))

    return result_of(case("bias_relu"), kernel, kind=ProblemKind.KERNELBENCH, info=info)


NO_GPU = os.environ | {"CUDA_VISIBLE_DEVICES": ""}


def run_tests(*folders):
    files = [str(f / "test_kernel.py") for f in folders]
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--import-mode=importlib",
               "-p", "no:cacheprovider", *files]  # fmt: skip
    return subprocess.run(
        command, capture_output=True, text=True, timeout=100, cwd=folders[0], env=NO_GPU
    )


def test_the_folder_holds_everything_a_reader_needs(tmp_path):
    folder = write_best(tmp_path / "best", relative(RELATIVE_KERNEL))
    assert {p.name for p in folder.iterdir()} == {
        "kernel.py", "problem.py", "test_kernel.py", "benchmark.py", "verdict.json", "README.md",
    }  # fmt: skip
    assert (folder / "kernel.py").read_text() == RELATIVE_KERNEL
    readme = (folder / "README.md").read_text()
    assert "Reproduce it: `hotloop verify relative.py kernel.py`" in readme
    assert "hotloop optimize relative.py --seed 3" in readme
    verdict = from_json(Verdict, json.loads((folder / "verdict.json").read_text()))
    assert verdict.passed


def test_writing_again_replaces_the_folder(tmp_path):
    folder = write_best(tmp_path / "best", relative(FORGETFUL_KERNEL))
    (folder / "stale.py").write_text("")
    write_best(folder, relative(RELATIVE_KERNEL))
    assert (folder / "kernel.py").read_text() == RELATIVE_KERNEL
    assert not (folder / "stale.py").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["best"]


def test_a_candidate_file_outside_the_folder_is_refused(tmp_path):
    result = relative(RELATIVE_KERNEL)
    escape = Candidate(language="triton", sources=(SourceFile(path="../x.py", text=""),))
    with pytest.raises(ValueError, match="relative path"):
        write_best(
            tmp_path / "best",
            BestResult(
                problem=result.problem,
                info=result.info,
                candidate=escape,
                verdict=result.verdict,
                verify_command="",
                search_command="",
            ),  # fmt: skip
        )
    assert not (tmp_path / "x.py").exists()


def test_the_nominal_workloads_sizes_win_over_the_files():
    nominal = Workload(name="nominal", role=Role.NOMINAL, settings={"S": 16})
    files = render_best(relative(RELATIVE_KERNEL, workloads=(nominal,), settings={"B": 3}))
    namespace = {}
    exec(files["problem.py"], namespace)
    assert (namespace["S"], namespace["B"]) == (16, 3)


def test_sizes_set_on_the_command_line_stand_in_the_copy_of_the_problem():
    files = render_best(relative(RELATIVE_KERNEL, settings={"S": 16}))
    namespace = {}
    exec(files["problem.py"], namespace)
    assert namespace["S"] == 16


@pytest.mark.parametrize("result", [relative(RELATIVE_KERNEL), model(case("bias_relu_kernel"))])
def test_generated_files_are_python_without_hotloop(result):
    files = render_best(result)
    for name in ("test_kernel.py", "benchmark.py"):
        imported = {
            (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
            for node in ast.walk(ast.parse(files[name]))
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        assert not any(module.startswith("hotloop") for module in imported)


def test_chosen_values_of_tunables_are_pinned_in_the_kernel():
    result = relative("TUNABLES = {'BLOCK': [64, 128]}\nBLOCK = 64\n")
    pinned = replace(result, candidate=replace(result.candidate, pins={"BLOCK": 128}))
    namespace = {}
    exec(render_best(pinned)["kernel.py"], namespace)
    assert namespace["BLOCK"] == 128


def test_without_a_gpu_nothing_is_said_about_speed():
    text = render_best(relative(RELATIVE_KERNEL))["README.md"]
    assert "nothing was timed" in text
    assert " ms" not in text


def test_on_a_gpu_time_and_ratio_are_stated():
    measured = Performance(
        latency_ms=0.4, spread_ms=0.01, samples=50, timer="cupti", l2="cold",
        speedup={"flex": 1.25},
    )  # fmt: skip
    text = render_best(relative(RELATIVE_KERNEL, performance=measured))["README.md"]
    assert "0.4 ms" in text
    assert "1.25x over flex" in text


@pytest.mark.slow
def test_the_generated_test_passes_a_right_kernel_and_fails_a_wrong_one(tmp_path):
    masked = result_of(
        case("document"), case("document_kernel"), info=lambda p: attention_info(p, masked=True)
    )
    right = [relative(RELATIVE_KERNEL), masked, model(case("bias_relu_kernel"))]
    wrong = [relative(FORGETFUL_KERNEL), model(LINEAR_KERNEL)]
    good = [write_best(tmp_path / f"right{i}", r) for i, r in enumerate(right)]
    bad = [write_best(tmp_path / f"wrong{i}", r) for i, r in enumerate(wrong)]
    passed = run_tests(*good)
    assert passed.returncode == 0, passed.stdout[-3000:]
    assert "12 passed" in passed.stdout
    failed = run_tests(*bad)
    assert "8 failed" in failed.stdout, failed.stdout[-3000:]


@pytest.mark.slow
def test_half_precision_without_a_gpu_is_skipped_with_the_reason(tmp_path):
    half = result_of(
        case("relative"),
        RELATIVE_KERNEL,
        info=lambda p: attention_info(p, dtype="bfloat16"),
    )
    folder = write_best(tmp_path / "half", half)
    ran = run_tests(folder)
    assert ran.returncode == 0
    assert "4 skipped" in ran.stdout
    assert "needs an NVIDIA GPU" in ran.stdout
    timed = subprocess.run(
        [sys.executable, "benchmark.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        env=NO_GPU,
    )
    assert timed.returncode == 1
    assert "needs an NVIDIA GPU" in timed.stdout
