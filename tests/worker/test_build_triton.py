"""The compile lane's inner part: fake launches, ahead-of-time compilation, resources, errors.

The candidates are in `build_cases.py`; all of them are built in one process per Triton version. For
a second Triton, see `test_interpreter.py`.

Cache keys: `cache_key_cases.py` computes the keys again, in another process, with real tensors and
Triton's own CUDA driver class, and finds the compiled kernels. Covered: arguments, specialisation
by divisibility, by the value 1 and by None, descriptors, options, autotuner, target, source. Not
covered without a GPU: that the real driver reports capability 9.0, and that torch's CUDA allocator
aligns as assumed. The GPU test at the end covers those.
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

KEYED = ("add", "odd", "tuned", "matmul")


def run_program(name: str, arguments: list[str], triton: str, given: str = "") -> Any:
    """Run one of the programs beside this file and return the JSON of its last line."""
    path = os.environ.get("HOTLOOP_TRITON_36", "") if triton == "3.6" else ""
    if triton == "3.6" and not path:
        pytest.skip("HOTLOOP_TRITON_36 does not name a folder with Triton 3.6")
    entries = [entry for entry in (path, str(SOURCE)) if entry]
    done = subprocess.run(
        [sys.executable, str(HERE / name), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entries)},
        input=given,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module", params=["installed", "3.6"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Build every candidate once; the answers, and where their sources and cache are."""
    folder = tmp_path_factory.mktemp("build")
    report = run_program("build_cases.py", [str(folder)], request.param)
    if request.param == "3.6":
        assert report["triton"].startswith("3.6")
    return {
        "triton": request.param,
        "folder": folder,
        "inputs": report["inputs"],
        **report["answers"],
    }


def only_kernel(answer: dict[str, Any]) -> dict[str, Any]:
    assert answer["status"] == "ok", answer
    (kernel,) = answer["kernels"]
    return kernel


def test_vector_add(built: Any) -> None:
    kernel = only_kernel(built["add"])
    assert kernel["name"] == "add_kernel"
    assert (kernel["num_warps"], kernel["num_stages"]) == (8, 3)
    assert 8 <= kernel["registers"] <= 64
    assert kernel["spill_bytes"] == kernel["local_bytes"] == kernel["shared_bytes"] == 0
    assert kernel["grids"] == [[1, 1, 1]]
    assert kernel["signature"] == {
        "x": "*fp32",
        "y": "*fp32",
        "out": "*fp32",
        "n": "i32",
        "BLOCK": "constexpr",
    }
    assert kernel["constexprs"] == {"BLOCK": "1024"}
    assert len(kernel["cubin_sha256"]) == 64
    assert kernel["cubin_bytes"] > 1000
    assert kernel["compile_s"] > 0


def test_softmax_that_asks_for_occupancy(built: Any) -> None:
    kernel = only_kernel(built["softmax"])
    assert kernel["constexprs"] == {"BLOCK": "1024"}
    assert kernel["grids"] == [[4096, 1, 1]]
    assert kernel["shared_bytes"] > 0  # the reduction across warps


def test_matmul_with_host_and_device_descriptors(built: Any) -> None:
    matmul, scale = built["matmul"]["kernels"]
    assert matmul["signature"]["a"] == "tensordesc<bf16[128, 64]>"
    assert matmul["grids"] == [[4, 3, 1]]
    # Two tiles of 128 x 64 bf16 in each of 3 stages, and the barriers.
    assert matmul["shared_bytes"] >= 3 * 2 * 128 * 64 * 2
    assert scale["grids"] == [[8, 6, 1]]


def test_autotuned_kernel_is_compiled_for_the_first_configurations(built: Any) -> None:
    kernels = built["tuned"]["kernels"]
    variants = [(k["constexprs"]["BLOCK"], k["num_warps"], k["num_stages"]) for k in kernels]
    assert variants == [("128", 2, 2), ("256", 4, 3), ("512", 8, 4)]
    assert {k["constexprs"]["EVEN"] for k in kernels} == {"False"}


def test_compile_error_points_at_the_line_in_the_called_function(built: Any) -> None:
    answer = built["error"]
    assert answer["status"] == "failed"
    error = answer["error"]
    assert error["kind"] == "compile_error"
    assert error["kernel"] == "broken_kernel"
    start = f"kernel.py:{error['line']}: NameError('undefined_name is not defined')"
    assert error["message"] == f"{start}\n{error['excerpt']}"
    line, caret = error["excerpt"].splitlines()
    assert line.strip() == "return x + undefined_name"
    assert caret.index("^") == line.index("undefined_name") == error["column"] - 1
    source = (built["folder"] / "error" / "kernel.py").read_text().splitlines()
    assert source[error["line"] - 1] == line
    assert "broken_kernel[(1,)]" in error["traceback"]


def test_static_assert_is_a_compile_error(built: Any) -> None:
    error = built["asserts"]["error"]
    assert error["kind"] == "compile_error"
    assert "BLOCK must be 32" in error["message"]


def test_assembler_error_names_no_host_path(built: Any) -> None:
    error = built["bad_asm"]["error"]
    assert "Not a name of any known instruction" in error["message"]
    assert "/" not in error["message"]


def test_too_much_shared_memory_is_a_failure_with_both_numbers(built: Any) -> None:
    error = built["too_much"]["error"]
    assert error["kind"] == "out_of_shared_memory"
    assert error["available_bytes"] == 227 * 1024
    assert error["needed_bytes"] > error["available_bytes"]
    assert built["too_much"]["kernels"] == []


def test_one_configuration_that_fits_is_enough(built: Any) -> None:
    assert only_kernel(built["some_fit"])["constexprs"]["BK"] == "32"
    (rejected,) = built["some_fit"]["rejected"]
    assert rejected["constexprs"]["BK"] == "256"
    assert rejected["reason"] == "out_of_shared_memory"


def test_spills_are_counted(built: Any) -> None:
    kernel = only_kernel(built["spills"])
    assert kernel["spill_bytes"] > 0
    assert kernel["spill_load_bytes"] > 0
    assert kernel["local_bytes"] > 0


def test_module_with_parameters_pins_and_torch_operations(built: Any) -> None:
    kernel = only_kernel(built["parameters"])
    assert kernel["constexprs"]["BLOCK"] == "512"  # the pin, not the module's 256
    assert kernel["signature"]["bias"] == "*fp16"
    assert kernel["grids"] == [[4, 1, 1]]


def test_broken_contracts_are_named(built: Any) -> None:
    assert "'bias'" in built["wrong_parameter"]["contract"]
    assert "ModelNew" in built["no_model"]["contract"]


def test_a_look_at_the_data_needs_a_gpu_and_fails_nothing(built: Any) -> None:
    answer = built["looks"]
    assert answer["status"] == "needs_gpu"
    assert answer["needs_gpu"]["kind"] == "data_dependent"
    assert "x.sum() > 0" in answer["needs_gpu"]["traceback"]
    assert [kernel["name"] for kernel in answer["kernels"]] == ["copy_kernel"]


def test_specialisation_makes_variants(built: Any) -> None:
    first, aligned, strided = built["odd"]["kernels"]
    assert len({kernel["cache_key"] for kernel in (first, aligned, strided)}) == 3
    assert aligned["constexprs"]["m"] == "1"  # an integer 1 is compiled in
    assert aligned["constexprs"]["unused"] == "None"
    assert "m" not in strided["constexprs"]


def look_up(built: Any, *device: str) -> dict[str, list[dict[str, Any]]]:
    requests = {name: built["inputs"][name] for name in KEYED}
    arguments = [str(built["folder"]), *device]
    found = run_program("cache_key_cases.py", arguments, built["triton"], json.dumps(requests))
    return dict(found)


def check_found(built: Any, found: dict[str, list[dict[str, Any]]]) -> None:
    for name in KEYED:
        ours = {kernel["cache_key"] for kernel in built[name]["kernels"]}
        hits = {entry["cache_key"] for entry in found[name] if entry["hit"]}
        assert ours == hits, name
        misses = [entry for entry in found[name] if not entry["hit"]]
        # The lane compiled 3 of the 4 configurations of `tuned`; nothing else may be missing.
        assert len(misses) == (1 if name == "tuned" else 0), name


def test_a_launch_through_tritons_own_driver_finds_the_compiled_kernels(built: Any) -> None:
    check_found(built, look_up(built))


@pytest.mark.gpu
def test_a_launch_on_a_gpu_finds_the_compiled_kernels(built: Any) -> None:
    check_found(built, look_up(built, "cuda"))
