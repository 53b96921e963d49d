"""CUDA C++ to a binary for sm_90: by NVRTC through cuda-core where both are there, else by nvcc.

NVRTC is the faster one: it starts no other process. It needs its shared library and the toolkit's
headers; where one of them is missing, nvcc is asked.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.errors import ToolMissing

ARCH = "sm_90a"
"""With the instructions that only Hopper has (wgmma, TMA)."""

NVCC_OPTIONS = ("-cubin", f"-arch={ARCH}", "-std=c++17", "-lineinfo", "-Xptxas", "-v")
NVCC_TIMEOUT_S = 120.0
C_HEADERS = Path(__file__).with_name("nvrtc_include")
"""`stdint.h` and the like: NVRTC has no C library, and most kernels include one of these."""
TOOLKIT_FOLDERS = ("/usr/local/cuda",)
"""Where the CUDA toolkit is when neither PATH nor CUDA_HOME says."""


class CompileFailedError(Exception):
    """The compiler refused the source; `log` is what it said."""

    def __init__(self, log: str) -> None:
        super().__init__(log)
        self.log = log


@dataclass(frozen=True, slots=True)
class Compiled:
    """The result of one compilation."""

    cubin: bytes
    log: str
    compiler: str
    compile_s: float


def compile_cubin(source: str, name: str) -> Compiled:
    """Compile CUDA C++ to a binary for sm_90.

    Args:
        source: text of one translation unit.
        name: its file name, as errors shall show it.

    Raises:
        CompileFailedError: the compiler refused it.
        ToolMissing: there is neither NVRTC nor nvcc.
    """
    start = time.perf_counter()
    program = _nvrtc_program(source, name)
    if program is None:
        cubin, log = compile_by_nvcc(source, name)
        return Compiled(cubin, log, "nvcc", time.perf_counter() - start)
    cubin = _compile_by_nvrtc(program)
    return Compiled(cubin, "", "nvrtc", time.perf_counter() - start)


def _nvrtc_program(source: str, name: str) -> Any:
    """Return cuda-core's program object, or None where NVRTC or its headers are not installed."""
    headers = header_folders()
    try:
        from cuda import core

        module = (
            core if hasattr(core, "Program") else importlib.import_module("cuda.core.experimental")
        )
    except ImportError:
        return None
    if not headers:
        return None
    options = module.ProgramOptions(
        name=name,
        arch=ARCH,
        std="c++17",
        lineinfo=True,
        include_path=[*headers, os.fspath(C_HEADERS)],
    )
    # nvcc knows INFINITY and the like unasked; the line directive keeps the source's own numbers.
    text = f'#include <math.h>\n#line 1 "{name}"\n{source}'
    try:
        return module.Program(text, "c++", options)
    except RuntimeError:  # cuda-core finds the shared library only here
        return None


def _compile_by_nvrtc(program: Any) -> bytes:
    try:
        return bytes(program.compile("cubin").code)
    except Exception as error:
        if not any(kind.__name__ == "NVRTCError" for kind in type(error).__mro__):
            raise
        raise CompileFailedError(str(error)) from error


def header_folders() -> list[str]:
    """Return the folders with CUDA's headers: a toolkit's, or those of torch's own packages."""
    places = [Path(home) / "include" for home in _toolkits()]
    nvidia = importlib.util.find_spec("nvidia")
    for root in (nvidia.submodule_search_locations or ()) if nvidia else ():
        places += sorted(Path(root).glob("*/include"))
    found = [place for place in places if (place / "cuda_bf16.h").is_file()]
    # Since CUDA 13 libcu++ lies apart; cooperative_groups.h needs it too.
    found += [place / "cccl" for place in found if (place / "cccl").is_dir()]
    return [os.fspath(place) for place in found]


def compile_by_nvcc(source: str, name: str) -> tuple[bytes, str]:
    """Compile with nvcc; return the binary and the log.

    Raises:
        CompileFailedError: nvcc refused the source, or took too long.
        ToolMissing: nvcc, or the host compiler that it starts, is not installed.
    """
    nvcc = _find_nvcc()
    if shutil.which("gcc") is None and not os.environ.get("NVCC_CCBIN"):
        raise ToolMissing("expected gcc for nvcc, found none; install it, or set NVCC_CCBIN")
    with tempfile.TemporaryDirectory() as folder:
        file, target = Path(folder) / name, Path(folder) / "out.cubin"
        file.write_text(source, encoding="utf-8")
        try:
            done = subprocess.run(
                [nvcc, *NVCC_OPTIONS, "-o", str(target), file.name],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=NVCC_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CompileFailedError(f"nvcc took over {NVCC_TIMEOUT_S:.0f} s") from error
        log = done.stdout + done.stderr
        if done.returncode != 0:
            raise CompileFailedError(log)
        return target.read_bytes(), log


def _toolkits() -> list[str]:
    homes = [os.environ.get("CUDA_HOME"), *TOOLKIT_FOLDERS]
    return [home for home in homes if home]


def _find_nvcc() -> str:
    places = [os.environ.get("PATH", os.defpath), *(f"{home}/bin" for home in _toolkits())]
    nvcc = shutil.which("nvcc", path=os.pathsep.join(places))
    if nvcc is None:
        raise ToolMissing(
            "expected cuda-core with NVRTC, or nvcc, to compile CUDA C++, found neither; install "
            "hotloop[gpu] or the CUDA toolkit"
        )
    return nvcc
