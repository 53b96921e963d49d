"""Compiled code that would make managed memory is refused unloaded; honest code is not."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from hotloop.worker.symbol_scan import RefusedCode, refuse_banned_calls, refuse_managed, symbols

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
KERNEL = 'extern "C" __global__ void k(int* y) { y[threadIdx.x] = table[threadIdx.x & 3]; }\n'


def cubin(folder: Path, source: str) -> bytes:
    (folder / "k.cu").write_text(source)
    command = ["nvcc", "-cubin", "-arch=sm_90a", "k.cu", "-o", "k.cubin"]
    subprocess.run(command, cwd=folder, check=True, timeout=100, capture_output=True)
    return (folder / "k.cubin").read_bytes()


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize(
    "declared",
    [
        "__managed__ int table[4];",
        "__attribute__((managed)) __device__ int table[4];",
        "#define PASTE(a, b) a##b\nPASTE(__man, aged__) int table[4];",
    ],
    ids=["plain", "attribute", "pasted"],
)
def test_managed_variables_are_found_whatever_they_are_called(
    tmp_path: Path, declared: str
) -> None:
    code = cubin(tmp_path, f"{declared}\n{KERNEL}")
    with pytest.raises(RefusedCode, match="`table` lies in managed memory"):
        refuse_managed(code)


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["__device__", "__constant__"])
def test_other_variables_pass(tmp_path: Path, kind: str) -> None:
    code = cubin(tmp_path, f"{kind} int table[4];\n{KERNEL}")
    refuse_managed(code)
    assert "k" in {symbol.name for symbol in symbols(code)}


@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_a_triton_cubin_passes() -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from hotloop.worker.warm_kernel import scale

    source = ASTSource(
        fn=scale,
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 512},
    )
    code = compile(source, target=GPUTarget("cuda", 90, 32)).asm["cubin"]
    refuse_managed(code)
    assert "scale" in {symbol.name for symbol in symbols(code)}


@pytest.mark.parametrize("code", [b"", b"//\n.version 8.0\n.target sm_90\n", b"\x7fELF\x01\x01"])
def test_what_is_no_cubin_is_refused(code: bytes) -> None:
    with pytest.raises(RefusedCode, match="64-bit ELF"):
        refuse_managed(code)


@needs_gcc
def test_a_damaged_binary_is_refused_and_reads_no_further(tmp_path: Path) -> None:
    code = library(tmp_path, "void f(void) {}")
    for size in (16, 63, 64, 200, len(code) // 2):
        with pytest.raises(RefusedCode, match="damaged"):
            list(symbols(code[:size]))
    with pytest.raises(RefusedCode, match="damaged"):
        list(symbols(code[:0x3A] + struct.pack("<H", 63) + code[0x3C:]))


def library(folder: Path, source: str) -> bytes:
    (folder / "f.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "f.c", "-o", "f.so"], cwd=folder, check=True)
    return (folder / "f.so").read_bytes()


@needs_gcc
@pytest.mark.parametrize(
    "name", ["cudaMallocManaged", "cuMulticastCreate", "cuMemPrefetchAsync_v2"]
)
def test_a_library_that_calls_what_is_banned_is_refused(tmp_path: Path, name: str) -> None:
    pasted = f"P({name[:3]}, {name[3:]})()"
    library(tmp_path, f"#define P(a, b) a##b\nvoid {pasted};\nvoid f(void) {{ {pasted}; }}")
    with pytest.raises(RefusedCode, match=name):
        refuse_banned_calls(tmp_path)


@needs_gcc
def test_an_honest_library_passes_and_so_does_none(tmp_path: Path) -> None:
    refuse_banned_calls(tmp_path)
    library(tmp_path, "void cudaMalloc(); void cudaMallocManagedly(void) { cudaMalloc(); }")
    refuse_banned_calls(tmp_path)
