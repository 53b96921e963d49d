"""What an aborting compiler said, found in logs as Triton 3.6 and 3.9 write them."""

from __future__ import annotations

import pytest

from hotloop.worker.assembler_advice import MAX_ADVICE, performance_losses
from hotloop.worker.crash_words import MAX_LINES, last_words
from hotloop.worker.cubin import spills_in

MODULE = "#mma = #ttg.nvidia_mma<{versionMajor = 3}>\nmodule attributes {} {\n  %0 = tt.x\n}\n" * 50
OPERAND = (
    'loc("acc"("/cache/a-b/kernel.py":64:58)): error: unexpected operand layout for '
    "NvidiaMmaEncodingAttr v3\nLLVM ERROR: Failed to infer result type(s):\n"
)
ASSERTION = (
    "python: /project/lib/NVGPUToLLVMPass.cpp:461: std::string getPtxAsm() const: Assertion "
    '`supported && "WGMMA type or shape is not supported"\' failed.\n'
)


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            OPERAND + MODULE,
            "kernel.py:64:58: error: unexpected operand layout for NvidiaMmaEncodingAttr v3\n"
            "LLVM ERROR: Failed to infer result type(s):",
        ),
        (ASSERTION + MODULE, "assertion failed: WGMMA type or shape is not supported"),
        ("x: Assertion `rank == 2' failed.\n", "assertion failed: rank == 2"),
        (
            "LLVM ERROR: Failed to find a valid layout\n",
            "LLVM ERROR: Failed to find a valid layout",
        ),
        ("/tmp/x/kernel.py:3:7: error: bad\n    a = b\n", "kernel.py:3:7: error: bad"),
        (MODULE, ""),
        ("kernel.py:3:7: warning: slow\nnote: error free\n", ""),
        ("", ""),
    ],
)
def test_the_error_is_found_and_names_no_folder(log: str, said: str) -> None:
    assert last_words(log) == said


def test_few_lines_are_kept() -> None:
    log = "".join(f"kernel.py:{n}:1: error: number {n}\n" * 2 for n in range(40))
    assert len(last_words(log).splitlines()) == MAX_LINES


LOG = """ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are \
serialized due to insufficient register resources for the wgmma pipeline in the function 'two' \
in line 575
ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized \
due to insufficient register resources for the function 'two'
ptxas info    : Function properties for two
    976 bytes stack frame, 1992 bytes spill stores, 1096 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 976 bytes cumulative stack size
"""


def test_losses_are_told_without_the_functions_name() -> None:
    serialised = (
        "wgmma.mma_async instructions are serialized due to insufficient register resources"
    )
    assert performance_losses(LOG + LOG) == (
        f"C7511: {serialised} for the wgmma pipeline",
        f"C7512: {serialised}",
    )
    assert spills_in(LOG) == (1992, 1096)


def test_a_log_without_losses_has_none() -> None:
    quiet = "ptxas info    : Used 32 registers\nptxas info    : Compile time = 3.1 ms\n"
    assert performance_losses(quiet) == ()
    assert spills_in(quiet) is None
    many = "".join(f"(C75{n:02}) Potential Performance Loss: number {n}\n" for n in range(20))
    assert len(performance_losses(many)) == MAX_ADVICE
