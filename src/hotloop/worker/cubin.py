"""What a compiled GPU binary needs per thread and per block.

Asks the tools that ship with Triton: `cuobjdump --dump-resource-usage` for registers, stack and
static shared memory, and, only where a kernel has a stack, `ptxas -v` on its PTX for the bytes
that are spilled (a stack can also hold arrays).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triton import knobs

RESERVED_SHARED_BYTES = 1024
"""Shared memory that the system keeps in each block from sm_90 on; not the kernel's own."""

_USAGE = re.compile(r"Function ([^:\n]+):\s*\n([^\n]*)")
_FIELD = re.compile(r"(\w+)(?:\[\d+\])?:(\d+)")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True, slots=True)
class CubinResources:
    """Resources of one kernel."""

    registers: int
    """Per thread."""
    local_bytes: int
    """Stack and local memory per thread."""
    static_shared_bytes: int
    """Per block, without what the system reserves."""


def inspect_cubin(cubin: bytes, kernel: str) -> CubinResources:
    """Return the resources of `kernel` in a binary.

    Raises:
        KeyError: the binary has no such kernel.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name, line in _USAGE.findall(text):
        if name.strip() == kernel:
            fields = {key: int(value) for key, value in _FIELD.findall(line)}
            shared = fields["SHARED"]
            return CubinResources(
                fields["REG"],
                fields["STACK"] + fields["LOCAL"],
                shared - RESERVED_SHARED_BYTES if shared >= RESERVED_SHARED_BYTES else shared,
            )
    found = ", ".join(name for name, _ in _USAGE.findall(text)) or "none"
    raise KeyError(f"expected kernel {kernel!r} in the binary, found {found}")


def spilled_bytes(ptx: str, arch: str, options: list[str]) -> tuple[int, int]:
    """Return the bytes that the assembler spills, as (stores, loads) of one thread.

    Args:
        ptx: text with one kernel.
        arch: for example `sm_90a`.
        options: further assembler options, those of the real compilation.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        target = Path(folder) / "kernel.cubin"
        command = [
            _assembler(),
            "-v",
            *options,
            f"--gpu-name={arch}",
            str(source),
            "-o",
            str(target),
        ]
        log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return spills_in(log) or (0, 0)


def spills_in(log: str) -> tuple[int, int] | None:
    """Return the spilled bytes in the log of `ptxas -v`; None where it says nothing of them."""
    match = _SPILLS.search(log)
    return (int(match.group(1)), int(match.group(2))) if match else None


def _assembler() -> str:
    from triton.backends.nvidia.compiler import get_ptxas

    tool: Any = get_ptxas(90)
    return str(tool.path)
