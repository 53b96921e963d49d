"""The `cuda` language: launch descriptions, compilation by nvcc or NVRTC, resources and errors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hotloop.errors import ToolMissing
from hotloop.worker import build_cuda, cuda_compiler
from hotloop.worker.kernel_parameters import parameter_sizes
from hotloop.worker.launch_description import LaunchDescriptionError, parse
from hotloop.worker.launch_plan import bind
from hotloop.worker.module_host import ContractError

has_compiler = shutil.which("nvcc") is not None or Path("/usr/local/cuda/bin/nvcc").exists()
needs_compiler = pytest.mark.skipif(not has_compiler, reason="nvcc is not installed")

DESCRIPTION: dict[str, Any] = {
    "inputs": {"x": ["B", "S"], "eps": None},
    "state": {"norm.weight": ["S"]},
    "outputs": {"y": {"shape": ["B", "S"], "dtype": "float32"}},
    "scratch": {"sums": {"shape": ["B"], "dtype": "float32"}},
    "sizes": {"BLOCKS": "cdiv(B * S, 256)"},
    "kernels": [
        {
            "name": "row_sums",
            "grid": ["B"],
            "block": [128],
            "shared_bytes": "128 * 4",
            "args": ["x", "sums", "S"],
        },
        {
            "name": "scale",
            "grid": ["BLOCKS", 1],
            "block": "256",
            "args": ["x", "norm.weight", "sums", "y", {"int64": "B * S"}, {"float32": "eps * 2"}],
        },
    ],
}

KERNELS = """
extern "C" __global__ void row_sums(const float* x, float* sums, int S) {
  extern __shared__ float part[];
  float total = 0.f;
  for (int i = threadIdx.x; i < S; i += blockDim.x) total += x[blockIdx.x * S + i];
  part[threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int i = 1; i < 128; ++i) total += part[i];
  sums[blockIdx.x] = total;
}
extern "C" __global__ void scale(const float* x, const float* w, const float* sums, float* y,
                                 long long n, float eps) {
  __shared__ float fixed[64];
  long long i = blockIdx.x * 256LL + threadIdx.x;
  if (threadIdx.x < 64) fixed[threadIdx.x] = w[threadIdx.x];
  __syncthreads();
  if (i < n) y[i] = x[i] * fixed[i % 64] / (sums[i / 64] + eps);
}
"""

MESSAGE: dict[str, Any] = {
    "inputs": [{"shape": [1000, 64], "dtype": "float32"}, {"value": {"value": 0.25}}],
    "state": {"norm.weight": {"shape": [64], "dtype": "float32"}},
}


def source(body: str = KERNELS, **changes: Any) -> str:
    return f"/* {json.dumps({**DESCRIPTION, **changes}, indent=1)} */\n{body}"


def build(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "kernel.cu"
    path.write_text(text)
    return build_cuda.build(path, MESSAGE)


def test_description_is_bound_to_shapes() -> None:
    plan = bind(parse(source()), [(1000, 64), 0.25], {"norm.weight": (64,)})
    sums, scale = plan.launches
    assert (sums.grid, sums.block, sums.shared_bytes) == ((1000, 1, 1), (128, 1, 1), 512)
    assert sums.args == (("buffer", "x"), ("buffer", "sums"), ("int32", 64))
    assert scale.grid == (250, 1, 1)
    assert scale.args[-2:] == (("int64", 64000), ("float32", 0.5))
    assert plan.outputs == {"y": ((1000, 64), "float32")}
    assert plan.scratch == {"sums": ((1000,), "float32")}


@pytest.mark.parametrize(
    ("inputs", "state", "text"),
    [
        ([(1000, 64, 1), 0.25], (64,), "'x' has shape"),
        ([(1000, 64), 0.25], (65,), "'norm.weight': 'S' is 64, its extent is 65"),
        ([(1000, 64)], (64,), "expected 1 inputs, the description has 2"),
        ([0.25, (1000, 64)], (64,), "'x' is a number"),
        ([(1000, 64), (1,)], (64,), "'eps' is a tensor"),
    ],
)
def test_description_that_does_not_fit_is_refused(inputs: Any, state: Any, text: str) -> None:
    with pytest.raises(LaunchDescriptionError, match=text):
        bind(parse(source()), inputs, {"norm.weight": state})


def kernel(**changes: Any) -> dict[str, Any]:
    first, second = DESCRIPTION["kernels"]
    return {"kernels": [{**first, **changes}, second]}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (kernel(block=[2048]), "1 to 1024 threads"),
        (kernel(grid=["B * 10000000"]), "expected a grid"),
        (kernel(grid=[0]), "expected a grid"),
        (kernel(shared_bytes="300 * 1024"), "bytes of shared memory"),
        (kernel(grid=["Q"]), "unknown name 'Q'"),
        (kernel(args=[{"float16": "1"}]), "expected an argument"),
        (kernel(args=["nothing"]), "unknown name 'nothing'"),
        (kernel(name="a b"), "identifier"),
        (kernel(grid=[1, 1, 1, 1]), "1 to 3 grid"),
        (kernel(args=["x", {"int32": "B * 2200000000"}]), "outside int32"),
        (kernel(args=["x", {"uint32": "0 - B"}]), "outside uint32"),
        ({"kernels": []}, "1 to 64 launches"),
        ({"kernels": [DESCRIPTION["kernels"][0]]}, r"\['y'\]: no kernel has them"),
        ({"scratch": {"x": {"shape": ["B"], "dtype": "int8"}}}, r"\['x'\] twice"),
        ({"scratch": {"sums": {"shape": ["B - 1001"], "dtype": "int8"}}}, r"got \(-1,\)"),
        ({"outputs": {"y": {"shape": ["B"], "dtype": "float31"}}}, "float31"),
        ({"surprise": 1}, "unknown surprise"),
        ({"inputs": {"x": "B"}}, "list of extents"),
    ],
)
def test_malformed_description_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(LaunchDescriptionError, match=text):
        bind(parse(source(**changes)), [(1000, 64), 0.25], {"norm.weight": (64,)})


def test_no_description_and_no_json_are_refused() -> None:
    with pytest.raises(LaunchDescriptionError, match="begin with"):
        parse(KERNELS)
    with pytest.raises(LaunchDescriptionError, match="line 2"):
        parse('/* {"a": 1,\n b} */')


@needs_compiler
def test_resources_of_each_kernel(tmp_path: Path) -> None:
    answer = build(tmp_path, source())
    assert answer["status"] == "ok"
    sums, scale = answer["kernels"]
    assert (sums["name"], sums["num_warps"], sums["grids"]) == ("row_sums", 4, [[1000, 1, 1]])
    assert sums["shared_bytes"] == 512  # dynamic
    assert scale["shared_bytes"] == 256  # static
    assert scale["num_warps"] == 8
    assert all(8 <= k["registers"] <= 64 and k["spill_bytes"] == 0 for k in (sums, scale))
    assert (tmp_path / answer["cubin"]).stat().st_size == sums["cubin_bytes"]


@needs_compiler
def test_first_error_has_the_line_of_the_file(tmp_path: Path) -> None:
    text = source(KERNELS.replace("part[threadIdx.x] = total;", "part[threadIdx.x] = totl;"))
    answer = build(tmp_path, text)
    assert answer["status"] == "failed"
    error = answer["error"]
    assert error["kind"] == "compile_error"
    assert text.splitlines()[error["line"] - 1].strip() == "part[threadIdx.x] = totl;"
    first, line, *caret = error["message"].splitlines()
    assert first == f'kernel.cu:{error["line"]}: identifier "totl" is undefined'
    assert "totl" in line
    assert caret in ([], [" " * line.index("totl") + "^"])


@needs_compiler
def test_more_static_shared_memory_than_there_is(tmp_path: Path) -> None:
    answer = build(tmp_path, source(KERNELS.replace("fixed[64]", "fixed[70000]")))
    assert answer["status"] == "failed"
    assert "shared" in answer["error"]["message"]


@needs_compiler
def test_static_and_dynamic_shared_memory_are_added(tmp_path: Path) -> None:
    kernels = [DESCRIPTION["kernels"][0], {**DESCRIPTION["kernels"][1], "shared_bytes": 227 * 1024}]
    error = build(tmp_path, source(kernels=kernels))["error"]
    assert error["kind"] == "out_of_shared_memory"
    assert error["needed_bytes"] == 227 * 1024 + 256


@needs_compiler
def test_spills_are_counted(tmp_path: Path) -> None:
    body = KERNELS.replace(
        "__global__ void scale", "__global__ void __launch_bounds__(256, 8) scale"
    )
    many = "".join(f"float v{i} = x[(i + {i}) % n];" for i in range(96))
    total = "+".join(f"v{i} * v{95 - i}" for i in range(96))
    use = "".join(f"y[(i * 3 + {i}) % n] = v{i};" for i in range(96))
    body = body.replace("if (i < n) y[i] =", f"{many} __syncthreads(); {use} y[i % n] = {total} +")
    scale = build(tmp_path, source(body))["kernels"][1]
    assert scale["registers"] <= 32
    assert scale["spill_bytes"] > 0


@needs_compiler
def test_a_kernel_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="expected kernel 'scale' in the binary"):
        build(
            tmp_path,
            source(KERNELS.replace('extern "C" __global__ void scale', "__global__ void scale")),
        )


@needs_compiler
@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["x", "sums"], r"takes 3 parameters of \[8, 8, 4\] bytes.* passes 2 of \[8, 8\]"),
        (["x", "sums", {"int64": "S"}], r"passes 3 of \[8, 8, 8\]"),
        (["x", "sums", "S", "S"], "passes 4"),
    ],
)
def test_arguments_that_are_not_the_kernels(tmp_path: Path, args: list[Any], text: str) -> None:
    with pytest.raises(ContractError, match=text):
        build(tmp_path, source(**kernel(args=args)))


@needs_compiler
def test_parameters_of_any_size_are_read_from_the_binary() -> None:
    body = """
    struct Five { int values[5]; };
    extern "C" __global__ void mixed(double a, Five b, float* c, char d) { c[0] = a + d; }
    extern "C" __global__ void bare() {}
    """
    cubin, _ = cuda_compiler.compile_by_nvcc(body, "kernel.cu")
    assert parameter_sizes(cubin, "mixed") == (8, 20, 8, 1)
    assert parameter_sizes(cubin, "bare") == ()
    with pytest.raises(KeyError, match="missing"):
        parameter_sizes(cubin, "missing")


def test_broken_description_is_a_broken_contract(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="begin with"):
        build(tmp_path, KERNELS)


def test_no_compiler_is_the_machines_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(cuda_compiler, "TOOLKIT_FOLDERS", ())
    with pytest.raises(ToolMissing, match="cuda-core"):
        cuda_compiler.compile_by_nvcc(KERNELS, "kernel.cu")


def test_no_host_compiler_is_the_machines_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvcc").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="gcc"):
        cuda_compiler.compile_by_nvcc(KERNELS, "kernel.cu")


@needs_compiler
@pytest.mark.parametrize(
    "headers",
    [
        ("stdint.h", "float.h", "limits.h", "math.h", "stddef.h", "cuda_bf16.h"),
        ("cuda_bf16.h", "mma.h", "cstdint", "cfloat", "climits", "cmath", "cstddef"),
        ("cooperative_groups.h", "cstdint", "cuda_pipeline.h"),
    ],
)
def test_usual_headers_are_there_with_either_compiler(headers):
    includes = "".join(f"#include <{name}>\n" for name in headers)
    source = f'{includes}extern "C" __global__ void f(uint64_t* p) {{ p[0] = 1; }}\n'
    assert cuda_compiler.compile_cubin(source, "kernel.cu").cubin
    with pytest.raises(cuda_compiler.CompileFailedError):
        cuda_compiler.compile_cubin(f"#include <no_such_header.h>\n{source}", "kernel.cu")


@needs_compiler
def test_constants_that_need_no_header_elsewhere_need_none_here():
    source = 'extern "C" __global__ void f(float* p) { p[0] = -INFINITY; p[1] = NAN; }\n'
    assert cuda_compiler.compile_cubin(source, "kernel.cu").cubin
    with pytest.raises(cuda_compiler.CompileFailedError, match=r"kernel\.cu.*2"):
        cuda_compiler.compile_cubin(source + "__device__ int broken = y;\n", "kernel.cu")
