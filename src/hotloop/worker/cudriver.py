"""Call the CUDA driver API through ctypes: no torch, no third-party package.

For processes that must start fast or must hold no candidate code (the replay launcher), and for
the few driver calls that torch does not expose (IPC, virtual memory, tensor maps, typed memset).
Every call raises `CudaDriverError` unless it returns 0. Symbols carry their ABI suffix (`_v2`).
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

IPC_LAZY_ENABLE_PEER_ACCESS = 1
HANDLE_POSIX_FD = 1
LOCATION_DEVICE = 1
ALLOCATION_PINNED = 1
ACCESS_READ_WRITE = 3
GRANULARITY_RECOMMENDED = 1
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
    _fields_ = [("reserved", c_ubyte * 64)]


class MemLocation(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class MemAllocationProp(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("requested_handle_types", c_int),
        ("location", MemLocation),
        ("win32_handle_meta_data", c_void_p),
        ("alloc_flags", c_ubyte * 8),
    ]


class MemAccessDesc(ctypes.Structure):
    _fields_ = [("location", MemLocation), ("flags", c_int)]


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: id, padding to 8 bytes, a 64-byte union."""

    _fields_ = [("id", c_uint), ("pad", c_uint), ("value", c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(LaunchAttribute)),
        ("attribute_count", c_uint),
    ]


_lib: Any = None


def lib() -> Any:
    """Return libcuda, loaded once (loading does not call cuInit)."""
    global _lib
    if _lib is None:
        _lib = ctypes.CDLL("libcuda.so.1")
    return _lib


def call(name: str, *args: Any) -> None:
    """Call one driver function; pass ctypes values for everything that is not a 32-bit int."""
    code = getattr(lib(), name)(*args)
    if code:
        text = ctypes.c_char_p()
        lib().cuGetErrorName(code, byref(text))
        raise CudaDriverError(name, code, (text.value or b"?").decode())


def use_primary_context(device: int = 0) -> None:
    """Initialise CUDA and make the primary context (the one torch uses) current on this thread."""
    call("cuInit", 0)
    dev, ctx = c_int(), c_void_p()
    call("cuDeviceGet", byref(dev), device)
    call("cuDevicePrimaryCtxRetain", byref(ctx), dev)
    call("cuCtxSetCurrent", ctx)


def device_attribute(attribute: int, device: int = 0) -> int:
    value = c_int()
    call("cuDeviceGetAttribute", byref(value), attribute, device)
    return value.value


def synchronize() -> None:
    call("cuCtxSynchronize")


# -- plain memory -----------------------------------------------------------------------------


def mem_alloc(nbytes: int) -> int:
    ptr = c_uint64()
    call("cuMemAlloc_v2", byref(ptr), c_size_t(nbytes))
    return ptr.value


def mem_free(ptr: int) -> None:
    call("cuMemFree_v2", c_uint64(ptr))


def copy_to_device(ptr: int, data: bytes) -> None:
    call("cuMemcpyHtoD_v2", c_uint64(ptr), data, c_size_t(len(data)))


def copy_to_host(ptr: int, nbytes: int) -> bytes:
    out = ctypes.create_string_buffer(nbytes)
    call("cuMemcpyDtoH_v2", out, c_uint64(ptr), c_size_t(nbytes))
    return out.raw


def memset_d16(ptr: int, pattern: int, nbytes: int, stream: int = 0) -> None:
    """Fill `nbytes` (even) with a 16-bit pattern, in stream order."""
    call(
        "cuMemsetD16Async",
        c_uint64(ptr),
        ctypes.c_ushort(pattern),
        c_size_t(nbytes // 2),
        c_void_p(stream),
    )


def address_range(ptr: int) -> tuple[int, int]:
    """Return (base, nbytes) of the driver allocation that holds `ptr`."""
    base, size = c_uint64(), c_size_t()
    call("cuMemGetAddressRange_v2", byref(base), byref(size), c_uint64(ptr))
    return base.value, size.value


# -- legacy IPC ---------------------------------------------------------------------------------


def ipc_export(ptr: int) -> bytes:
    """Return the 64-byte handle of a cuMemAlloc allocation. It names the WHOLE allocation."""
    handle = IpcHandle()
    call("cuIpcGetMemHandle", byref(handle), c_uint64(ptr))
    return bytes(handle)


def ipc_open(handle: bytes) -> int:
    """Map another process's allocation; must not be called by the process that exported it."""
    ptr = c_uint64()
    call(
        "cuIpcOpenMemHandle_v2",
        byref(ptr),
        IpcHandle.from_buffer_copy(handle),
        c_uint(IPC_LAZY_ENABLE_PEER_ACCESS),
    )
    return ptr.value


def ipc_close(ptr: int) -> None:
    call("cuIpcCloseMemHandle", c_uint64(ptr))


# -- virtual memory management: hand-over by file descriptor ------------------------------------


def _device_prop(device: int) -> MemAllocationProp:
    return MemAllocationProp(
        ALLOCATION_PINNED, HANDLE_POSIX_FD, MemLocation(LOCATION_DEVICE, device)
    )


def vmm_round_up(nbytes: int, device: int = 0) -> int:
    """Round up to the allocation granularity (2 MiB on current GPUs)."""
    prop, grain = _device_prop(device), c_size_t()
    call("cuMemGetAllocationGranularity", byref(grain), byref(prop), GRANULARITY_RECOMMENDED)
    return -(-nbytes // grain.value) * grain.value


def _map(handle: c_uint64, size: int, device: int) -> int:
    ptr = c_uint64()
    call("cuMemAddressReserve", byref(ptr), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0))
    call("cuMemMap", ptr, c_size_t(size), c_size_t(0), handle, c_uint64(0))
    access = MemAccessDesc(MemLocation(LOCATION_DEVICE, device), ACCESS_READ_WRITE)
    call("cuMemSetAccess", ptr, c_size_t(size), byref(access), c_size_t(1))
    call("cuMemRelease", handle)  # the mapping keeps the memory alive
    return ptr.value


def vmm_create(nbytes: int, device: int = 0) -> tuple[int, int, int]:
    """Allocate shareable memory. Return (pointer, mapped bytes, file descriptor to send)."""
    size, prop, handle, fd = vmm_round_up(nbytes, device), _device_prop(device), c_uint64(), c_int()
    call("cuMemCreate", byref(handle), c_size_t(size), byref(prop), c_uint64(0))
    call("cuMemExportToShareableHandle", byref(fd), handle, HANDLE_POSIX_FD, c_uint64(0))
    return _map(handle, size, device), size, fd.value


def vmm_open(fd: int, size: int, device: int = 0) -> int:
    """Map memory received as a file descriptor; the caller closes `fd` afterwards."""
    handle = c_uint64()
    call("cuMemImportFromShareableHandle", byref(handle), c_void_p(fd), HANDLE_POSIX_FD)
    return _map(handle, size, device)


def vmm_close(ptr: int, size: int) -> None:
    call("cuMemUnmap", c_uint64(ptr), c_size_t(size))
    call("cuMemAddressFree", c_uint64(ptr), c_size_t(size))
