"""The recorded model run of `make demo-model`, played with the real judge."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "examples" / "recordings" / "relative_cpu.jsonl"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]


def test_the_recording_is_of_the_example_and_ends_in_a_verified_kernel(tmp_path):
    done = subprocess.run(
        [
            sys.executable, "-m", "hotloop", "optimize", "examples/attention/relative.py",
            "--device", "cpu", "--set", "dtype=float32", "--model", f"replay:{RECORDING}",
            "--strategy", "hybrid", "--parallel", "2", "--max-calls", "2", "--budget", "3m",
            "--out", str(tmp_path / "run"), "--json",
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=450, check=False,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["passed"]
    assert record["verdict"]["performance"] is None, "nothing is timed without a GPU"
    readme = (tmp_path / "run" / "best" / "README.md").read_text(encoding="utf-8")
    assert "replay:" in readme, "who wrote it is told"
