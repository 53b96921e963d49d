"""CUDA, cuBLAS, Triton, graphs and pinned memory inside the cage, from a fork of a warm process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hotloop
from hotloop.sandbox import Tier, scrubbed_environment

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("needs_t2")]


@pytest.fixture(autouse=True)
def _needs_gpu() -> None:
    if not os.path.exists("/dev/nvidiactl"):
        pytest.skip("needs an NVIDIA GPU: /dev/nvidiactl is not there")


# The cage opens the first GPU's node alone, whichever one the tests were told to use.
FIRST_GPU = {"CUDA_VISIBLE_DEVICES": "0"}


@pytest.mark.parametrize("tier", ["T1", "T2"])
def test_gpu_works_inside(work_dir: str, tier: str) -> None:
    source = os.path.dirname(hotloop.__path__[0])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "gpu_zygote.py"), tier, work_dir],
        env=scrubbed_environment(work_dir, {"PYTHONPATH": source, **FIRST_GPU}),
        capture_output=True,
        timeout=100,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    assert "error" not in answer, answer["error"]
    assert answer["report"]["tier"] == Tier(tier)
    assert [answer[what] for what in ("matmul", "triton", "graph", "pinned")] == [True] * 4
