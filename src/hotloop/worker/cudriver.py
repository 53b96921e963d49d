"""The few CUDA driver calls that torch does not offer, through ctypes: no third-party package.

Hand-over of device memory (CUDA IPC), typed fills, module loading and launches. Every call raises
`CudaDriverError` unless the driver returns 0. Symbols carry their ABI suffix (`_v2`). The caller's
thread must have a current context; torch makes the primary one current when it initialises.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any

OUT_OF_MEMORY = 2
IPC_LAZY_ENABLE_PEER_ACCESS = 1
ATTR_MAX_SHARED_OPTIN = 97
FUNC_SHARED_STATIC = 1
FUNC_MAX_DYNAMIC_SHARED = 8
FUNC_NON_PORTABLE_CLUSTER = 14
CACHE_PREFER_SHARED = 1


class CudaDriverError(RuntimeError):
    """A driver call that did not return CUDA_SUCCESS."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call} returned {code} ({name})")
        self.call, self.code, self.name = call, code, name


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle: 64 opaque bytes."""

    _fields_ = (("reserved", c_ubyte * 64),)


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: id, padding to 8 bytes, a 64-byte union."""

    _fields_ = (("id", c_uint), ("pad", c_uint), ("value", c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    )


@cache
def library() -> Any:
    """Return libcuda; loading it does not initialise CUDA."""
    return ctypes.CDLL("libcuda.so.1")


def call(name: str, *args: Any) -> None:
    """Call one driver function; pass ctypes values for everything that is not a 32-bit int.

    Raises:
        CudaDriverError: it did not return 0.
    """
    code = getattr(library(), name)(*args)
    if code:
        text = ctypes.c_char_p()
        library().cuGetErrorName(code, byref(text))
        raise CudaDriverError(name, code, (text.value or b"?").decode())


def make_context() -> None:
    """Make the primary context of device 0 current in this thread."""
    device, context = c_int(), c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", byref(device), 0)
    call("cuDevicePrimaryCtxRetain", byref(context), device)
    call("cuCtxSetCurrent", context)


def device_attribute(attribute: int) -> int:
    """Return one CUdevice_attribute of device 0."""
    value = c_int()
    call("cuDeviceGetAttribute", byref(value), attribute, 0)
    return value.value


def mem_alloc(nbytes: int) -> int:
    """Allocate device memory and return its address."""
    ptr = c_uint64()
    call("cuMemAlloc_v2", byref(ptr), c_size_t(nbytes))
    return ptr.value


def mem_free(ptr: int) -> None:
    """Free what `mem_alloc` returned."""
    call("cuMemFree_v2", c_uint64(ptr))


def copy_to_device(ptr: int, data: bytes) -> None:
    """Copy host bytes to device memory; blocks."""
    call("cuMemcpyHtoD_v2", c_uint64(ptr), data, c_size_t(len(data)))


def memset_d16(ptr: int, pattern: int, nbytes: int, stream: int = 0) -> None:
    """Fill `nbytes` (even) with a 16-bit pattern, in stream order."""
    half = c_size_t(nbytes // 2)
    call("cuMemsetD16Async", c_uint64(ptr), ctypes.c_ushort(pattern), half, c_void_p(stream))


def address_range(ptr: int) -> tuple[int, int]:
    """Return (base, nbytes) of the driver allocation that holds `ptr`."""
    base, size = c_uint64(), c_size_t()
    call("cuMemGetAddressRange_v2", byref(base), byref(size), c_uint64(ptr))
    return base.value, size.value


def ipc_export(ptr: int) -> bytes:
    """Return the 64-byte handle of a `mem_alloc` allocation; it names the whole of it."""
    handle = IpcHandle()
    call("cuIpcGetMemHandle", byref(handle), c_uint64(ptr))
    return bytes(handle)


def ipc_open(handle: bytes) -> int:
    """Map another process's allocation; not in the process that exported it."""
    ptr = c_uint64()
    source = IpcHandle.from_buffer_copy(handle)
    call("cuIpcOpenMemHandle_v2", byref(ptr), source, c_uint(IPC_LAZY_ENABLE_PEER_ACCESS))
    return ptr.value


def ipc_close(ptr: int) -> None:
    """Unmap what `ipc_open` returned."""
    call("cuIpcCloseMemHandle", c_uint64(ptr))
