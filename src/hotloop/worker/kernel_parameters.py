"""What the kernels in a GPU binary take: read from the binary, without a GPU.

A launch with too few arguments makes the driver read past the list of them, so the number and the
sizes are compared before anything is launched.

The binary is an ELF file with a section `.nv.info.KERNEL` of attributes; `cuobjdump -elf` prints
them under the names used here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_FORMAT_SIZED = 4
"""EIFMT_SVAL: two bytes of length, then as many of value; every other format has two of value."""
_PARAMETER = 0x17
"""EIATTR_KPARAM_INFO: index (4 bytes), ordinal (2), offset (2), flags (4) with the size on top."""
_PARAMETER_SIZE_SHIFT = 18
_TOTAL_SIZE = 0x19
"""EIATTR_CBANK_PARAM_SIZE: bytes of all parameters; absent where there are none."""


def parameter_sizes(cubin: bytes, kernel: str) -> tuple[int, ...] | None:
    """Return the bytes of each parameter of `kernel`, in order.

    Returns:
        None where the binary has parameters but describes them in another way than known here.

    Raises:
        KeyError: the binary has no such kernel.
    """
    attributes = list(_attributes(_section(cubin, f".nv.info.{kernel}")))
    found: dict[int, int] = {}
    for kind, value in attributes:
        if kind == _PARAMETER:
            _, ordinal, _, flags = struct.unpack("<IHHI", value)
            found[ordinal] = flags >> _PARAMETER_SIZE_SHIFT
    sizes = tuple(found[ordinal] for ordinal in sorted(found))
    has_parameters = any(kind == _TOTAL_SIZE for kind, _ in attributes)
    return sizes if sizes or not has_parameters else None


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        form, kind, length = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _FORMAT_SIZED:
            yield kind, data[at : at + length]
            at += length
        else:
            yield kind, struct.pack("<H", length)


def _section(cubin: bytes, wanted: str) -> bytes:
    """Return the content of a section of a 64-bit ELF file."""
    (headers,) = struct.unpack_from("<Q", cubin, 40)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", cubin, 58)
    rows = [struct.unpack_from("<IIQQQQ", cubin, headers + i * entry_bytes) for i in range(count)]
    names = rows[names_index][4]
    for name, _, _, _, offset, size in rows:
        start = names + name
        if cubin[start : cubin.index(b"\0", start)].decode() == wanted:
            return cubin[offset : offset + size]
    raise KeyError(f"expected section {wanted!r} in the binary, found none of that name")
