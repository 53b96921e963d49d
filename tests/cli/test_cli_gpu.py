"""A whole search on a GPU, and what it leaves behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "report" / "cases"
HAS_GPU = Path("/dev/nvidiactl").exists()

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not HAS_GPU, reason="needs an NVIDIA GPU"),
]


def run(*args, cwd, expected=0):
    ran = subprocess.run(
        [sys.executable, *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=500
    )
    assert ran.returncode == expected, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout


def test_a_search_ends_with_a_timed_kernel_that_stands_alone(tmp_path):
    sizes = ("--set", "B=2,H=8,S=2048,D=64,dtype=bfloat16")
    search = ("-m", "hotloop", "optimize", CASES / "relative.py", "--device", "cuda", *sizes)
    out = run(*search, "--budget", "2m", "--max-candidates", "3", "--json", cwd=tmp_path)
    record = json.loads(out)
    verdict = record["verdict"]
    assert verdict["tier"] == "final"
    assert verdict["performance"]["latency_ms"] > 0
    assert "flex" in verdict["performance"]["speedup_ci"]
    best = tmp_path / record["best_folder"]
    tested = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py", cwd=best)
    assert "4 passed" in tested
    timed = run("benchmark.py", cwd=best).splitlines()
    assert [line.split()[0] for line in timed[1:]] == ["kernel", "flex"]


def test_verify_refuses_a_wrong_kernel_on_a_gpu(tmp_path):
    right = (CASES / "relative_kernel.py").read_text()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(right.replace("score += (i - j)", "score += 0 * (i - j)"))
    command = ("-m", "hotloop", "verify", CASES / "relative.py", wrong, "--tier", "fast", "--json")
    out = run(*command, cwd=tmp_path, expected=1)
    assert json.loads(out)["status"] == "INCORRECT_NUMERICAL"
