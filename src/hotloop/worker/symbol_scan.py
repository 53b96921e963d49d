"""Refuse compiled code that would make managed memory or multicast objects, before it is loaded.

The static rules read source; this reads symbols of what was built from it, where macros and
attributes hide nothing. A variable in managed memory is made when the driver loads its module, so a
look after that is too late. Both kinds of memory can take a GPU, or all of a host, down.

Covered: managed variables in a cubin, calls of banned functions in a shared library. Not covered:
functions that a library looks up by name while it runs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BANNED = frozenset({
    "cudaMallocManaged", "cuMemAllocManaged", "cudaMemPrefetchAsync", "cuMemPrefetchAsync",
    "cudaMemAdvise", "cuMemAdvise", "cuMulticastCreate", "cuMulticastAddDevice",
    "cuMulticastBindMem", "cuMulticastBindAddr",
})  # fmt: skip
_MAGIC = b"\x7fELF\x02\x01"
"""64 bits, little endian: what cubins and x86-64 libraries are."""
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLES = (2, 11)
_OBJECT = 1
_MANAGED = 0x04
"""STO_CUDA_MANAGED in a symbol's `st_other`, as nvcc 13.0 writes it."""


class RefusedCode(ValueError):  # noqa: N818  what it says of itself: the code is refused
    """Compiled code that must not be loaded."""


class Symbol(NamedTuple):
    """One row of a symbol table."""

    name: str
    kind: int
    other: int
    section: int
    """0: it is defined elsewhere."""


def refuse_managed(cubin: bytes) -> None:
    """Make sure that a cubin has no variable in managed memory.

    Raises:
        RefusedCode: it has one, or it is no cubin.
    """
    managed = [s.name for s in symbols(cubin) if s.kind == _OBJECT and s.other & _MANAGED]
    if managed:
        raise RefusedCode(
            f"`{managed[0][:80]}` lies in managed memory, which can take the GPU down; use plain "
            "`__device__` variables or buffers"
        )


def refuse_banned_calls(folder: Path) -> None:
    """Make sure that no shared library below a folder calls a banned function.

    Raises:
        RefusedCode: one does.
    """
    for library in sorted(folder.rglob("*.so")):
        called = {s.name.partition("@")[0] for s in symbols(library.read_bytes()) if not s.section}
        banned = sorted(name for name in called if name.removesuffix("_v2") in BANNED)
        if banned:
            raise RefusedCode(
                f"{library.name} calls `{banned[0]}`, which can take the GPU down; use cudaMalloc"
            )


def symbols(elf: bytes) -> Iterator[Symbol]:
    """Yield the symbols of a 64-bit ELF file.

    Raises:
        RefusedCode: it is none, or it is damaged.
    """
    if not elf.startswith(_MAGIC):
        raise RefusedCode(f"expected a cubin or library (64-bit ELF), got {elf[:8]!r}")
    try:
        (start,) = struct.unpack_from("<Q", elf, 0x28)
        size, count = struct.unpack_from("<HH", elf, 0x3A)
        if size != _SECTION.size:
            raise ValueError(f"section headers of {size} bytes")
        sections = [_SECTION.unpack_from(elf, start + i * _SECTION.size) for i in range(count)]
        for section in sections:
            if section[1] not in _SYMBOL_TABLES:
                continue
            if section[9] != _SYMBOL.size:
                raise ValueError(f"symbols of {section[9]} bytes")
            names = sections[section[6]]
            for at in range(section[4], section[4] + section[5], _SYMBOL.size):
                name, info, other, index, _, _ = _SYMBOL.unpack_from(elf, at)
                yield Symbol(_text(elf, names[4] + name), info & 0xF, other, index)
    except (struct.error, IndexError, ValueError) as exc:
        raise RefusedCode(f"a damaged binary: {exc}") from None


def _text(elf: bytes, start: int) -> str:
    return elf[start : elf.index(b"\0", start)].decode("utf-8", "replace")
