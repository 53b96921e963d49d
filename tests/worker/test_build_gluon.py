"""Gluon in the compile lane: kernels with TMA and wgmma, advice, layout errors, launches.

The candidates are in `gluon_cases.py`; all of them are built in one process per Triton version. For
a second Triton, HOTLOOP_TRITON_36 names a folder that holds Triton 3.6.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["installed", "3.6"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    other = os.environ.get("HOTLOOP_TRITON_36", "") if request.param == "3.6" else ""
    if request.param == "3.6" and not other:
        pytest.skip("HOTLOOP_TRITON_36 does not name a folder with Triton 3.6")
    folder = tmp_path_factory.mktemp("gluon")
    report = run_program("gluon_cases.py", folder, other)
    assert request.param == "installed" or report["triton"].startswith("3.6")
    slots = [{"slot": {"shape": [64, 512], "dtype": "bfloat16"}}] * 2
    looked_up = run_program("cache_key_cases.py", folder, other, json.dumps({"plain": slots}))
    return {**report, "looked_up": looked_up["plain"]}


def run_program(name: str, folder: Path, triton: str, given: str = "") -> Any:
    """Run a program beside this file with a Triton; return the JSON of its last line."""
    done = subprocess.run(
        [sys.executable, str(HERE / name), str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (triton, str(SOURCE)) if p)},
        input=given,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def only_kernel(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["status"] == "ok", answer
    (kernel,) = answer["kernels"]
    return kernel


def test_a_kernel_with_tma_and_wgmma_has_its_resources(built: Any) -> None:
    kernel = only_kernel(built["plain"])
    assert kernel["name"] == "product_kernel"
    assert kernel["spill_bytes"] == 0
    assert kernel["num_warps"] == 4
    assert kernel["num_stages"] is None
    assert kernel["shared_bytes"] >= 2 * 64 * 64 * 2  # two tiles of bf16
    assert kernel["advice"] == []


def test_products_that_the_assembler_serialised_are_told(built: Any) -> None:
    kernel = only_kernel(built["serialised"])
    (advice,) = kernel["advice"]
    assert advice.startswith("C75")
    assert "wgmma.mma_async instructions are serialized due to insufficient register" in advice
    assert "function" not in advice
    assert kernel["spill_bytes"] > 0


def test_a_layout_mismatch_names_the_line_and_both_layouts(built: Any) -> None:
    error = built["mismatch"]["error"]
    assert error["kind"] == "compile_error"
    assert "Layout mismatch" in error["message"]
    assert "NVMMADistributedLayout" in error["message"]
    assert "BlockedLayout" in error["message"]
    assert f"kernel.py:{error['line']}:" in error["message"]
    assert "acc + gl.zeros" in error["excerpt"]


def test_a_name_that_gluon_lacks_is_told_with_its_line(built: Any) -> None:
    error = built["no_name"]["error"]
    assert error["kind"] == "compile_error"
    assert "has no attribute 'exp3'" in error["message"]
    assert f"kernel.py:{error['line']}:" in error["message"]
    assert "more = gl.exp3(more)" in error["excerpt"]


def test_a_forward_that_fails_says_where(built: Any) -> None:
    needs = built["fails"]["needs_gpu"]
    assert needs["kind"] == "in_library"  # an assertion of Triton's descriptor
    assert "from_tensor(a, [64, 48], layout)" in needs["traceback"]


def test_a_forward_that_looks_at_values_is_told_apart(built: Any) -> None:
    assert built["looks"]["needs_gpu"]["kind"] == "data_dependent"
    assert len(built["looks"]["kernels"]) == 1


def test_a_recorded_launch_passes_what_the_binary_takes(built: Any) -> None:
    launch = built["launch"]
    assert launch["gets"] == launch["takes"]
    assert launch["block"] == [128, 1, 1]
    first, second = launch["maps"]
    assert (first["shape"], first["strides"], first["block"]) == ([64, 512], [512, 1], [64, 64])
    assert first["element_bytes"] == 2
    assert first["swizzle"] == 3  # 128 bytes (CUtensorMapSwizzle)
    assert first["buffer"] != second["buffer"]


def test_a_launch_through_tritons_own_driver_finds_the_compiled_kernel(built: Any) -> None:
    (found,) = built["looked_up"]
    assert found["hit"]
    assert found["cache_key"] == only_kernel(built["plain"])["cache_key"]
