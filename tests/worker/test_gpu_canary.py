"""The canary without a GPU: its kernel compiles, its words differ, its failures are told apart."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from triton import knobs

from hotloop.errors import DeviceLost
from hotloop.worker import gpu_canary
from hotloop.worker.device import check_device
from hotloop.worker.gpu_health import Canary
from hotloop.worker.gpu_probes import run_canary


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_90a", "sm_100"])
def test_the_kernel_compiles(tmp_path: Path, arch: str) -> None:
    source = tmp_path / "canary.ptx"
    source.write_text(gpu_canary.PTX)
    command = [knobs.nvidia.ptxas.path, f"--gpu-name={arch}", str(source), "-o"]
    subprocess.run([*command, str(tmp_path / "canary.cubin")], check=True, timeout=60)


def test_no_two_words_are_alike() -> None:
    words = struct.unpack(f"<{gpu_canary.WORDS}I", gpu_canary.expected_words())
    assert len(set(words)) == gpu_canary.WORDS
    assert words[0] == gpu_canary.SEED


def canary(code: str, deadline_s: float = 20.0) -> Canary:
    return run_canary("GPU-1", command=[sys.executable, "-S", "-c", code], deadline_s=deadline_s)


def answering(answer: object) -> str:
    return f"print({json.dumps(json.dumps(answer))})"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (answering({"ok": True, "kernel": True, "gbps": 3100.5}), Canary(gbps=3100.5)),
        (
            answering({"ok": False, "no_room": "cuMemAlloc_v2 returned 2"}),
            Canary(problem="cuMemAlloc_v2 returned 2", has_room=False),
        ),
        (answering({"ok": False, "failed": "719"}), Canary(problem="719")),
    ],
)
def test_what_it_says_is_read(code: str, expected: Canary) -> None:
    assert canary(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(1)",
        "import os; os.abort()",
        "pass",
        "print('OK')",
        answering({"ok": "yes", "gbps": 3000}),
        answering({"ok": True, "gbps": "fast"}),
        answering([True]),
    ],
)
def test_whatever_else_it_does_is_a_failure(code: str) -> None:
    assert canary(code).problem is not None
    assert canary(code).has_room


def test_a_canary_that_hangs_is_a_failure_in_time() -> None:
    assert "did not answer within 0.2 s" in str(canary("while True: pass", 0.2).problem)


def test_it_sees_the_one_gpu_that_it_is_to_test() -> None:
    show = "import json, os; print(json.dumps({'ok': False, 'failed': os.environ['{}']}))"
    assert canary(show.replace("{}", "CUDA_VISIBLE_DEVICES")).problem == "GPU-1"
    code = "import os, sys; sys.exit(str('CUDA_VISIBLE_DEVICES' in os.environ))"
    found = run_canary(None, command=[sys.executable, "-S", "-c", code])
    assert found.problem == "False"


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a GPU")
def test_the_real_one_says_that_there_is_no_driver() -> None:
    assert "libcuda" in str(run_canary("GPU-1").problem)
    check_device("cpu")
    with pytest.raises(DeviceLost, match="expected a CUDA GPU that works.*libcuda.*--device cpu"):
        check_device("cuda")
