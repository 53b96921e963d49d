"""The repaired Triton interpreter against torch, for each Triton version at hand.

The kernels are in `interpreter_cases.py`, which needs a process of its own. A second Triton,
unpacked into a folder, is tested when the environment variable HOTLOOP_TRITON_36 names that folder:

    pip download --no-deps triton==3.6.0 -d DIR && unzip DIR/*.whl -d DIR/x
    HOTLOOP_TRITON_36=DIR/x pytest tests/worker/test_interpreter.py

(unzip keeps the mode of the assembler in it; Python's zipfile does not.)
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).with_name("interpreter_cases.py")
SOURCE = Path(__file__).parents[2] / "src"


def run_python(arguments: list[str], triton: str, **environment: str) -> str:
    """Run Python with the chosen Triton first on its path and return standard output."""
    path = os.environ.get("HOTLOOP_TRITON_36", "") if triton == "3.6" else ""
    if triton == "3.6" and not path:
        pytest.skip("HOTLOOP_TRITON_36 does not name a folder with Triton 3.6")
    entries = [entry for entry in (path, str(SOURCE)) if entry]
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entries), **environment},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("triton", ["installed", "3.6"])
def test_kernels_agree_with_torch(triton: str) -> None:
    report: dict[str, Any] = json.loads(run_python([str(CASES)], triton).splitlines()[-1])
    if triton == "3.6":
        assert report["triton"].startswith("3.6")
    failed = {name: error for name, error in report["results"].items() if error is not None}
    assert not failed, "\n\n".join(f"{name}: {error}" for name, error in failed.items())
    assert len(report["results"]) > 60


def test_install_refuses_a_process_that_compiles() -> None:
    code = (
        "from hotloop.worker import interpreter\n"
        "try:\n    interpreter.install()\n"
        "except RuntimeError as error:\n    print(error)\n"
    )
    assert "TRITON_INTERPRET=1" in run_python(["-c", code], "installed", TRITON_INTERPRET="0")
