"""Launch a recording again, on other buffers, in a process that holds no candidate Python.

Needs libcuda only: no torch, no Triton. The caller owns the context and the named buffers; the
replayer loads the machine code, allocates scratch, encodes tensor maps once, and then `launch`
only issues the kernels. Parameter bytes come from an untrusted recording: `Recording.from_json`
has checked that every address lies inside its buffer.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import byref, c_int, c_uint, c_uint64, c_void_p
from typing import Any

from hotloop.worker import cudriver as cu
from hotloop.worker.recording import Launch, Literal, Parameter, Pointer, Recording, TensorMap
from hotloop.worker.symbol_scan import refuse_managed
from hotloop.worker.tables import PIECE_BYTES

_DEFAULT_SHARED_BYTES = 48 * 1024  # more must be asked for (CUDA programming guide)
_TENSOR_MAP_BYTES, _TENSOR_MAP_ALIGNMENT = 128, 64
_L2_PROMOTION_128B, _INTERLEAVE_NONE = 2, 0
_ATTR_COOPERATIVE, _ATTR_CLUSTER, _ATTR_CLUSTER_POLICY, _ATTR_PROGRAMMATIC = 2, 4, 5, 6
_CLUSTER_POLICY_SPREAD = 1
_NON_PORTABLE_CLUSTER = 16


class Replayer:
    """One recording bound to buffers."""

    def __init__(
        self,
        recording: Recording,
        addresses: Mapping[str, int],
        *,
        modules: Mapping[str, c_void_p] | None = None,
    ) -> None:
        """Load and bind.

        Args:
            recording: what to launch.
            addresses: the device address of every named buffer.
            modules: machine code that another replayer has loaded, to be shared.

        Raises: CudaDriverError; KeyError when a named buffer has no address.
        """
        self._keep: list[Any] = []  # host memory that the launch arrays point into
        self._scratch: list[int] = []
        self.addresses: list[int] = []
        for buffer in recording.buffers:
            if buffer.name:
                self.addresses.append(addresses[buffer.name])
            else:
                self._scratch.append(cu.mem_alloc(max(buffer.nbytes, 1)))
                self.addresses.append(self._scratch[-1])
        self._fill_tables(recording)
        self._owns_modules = modules is None
        self.modules = modules or {k: _load(code) for k, code in recording.cubins.items()}
        self._launches = [self._bind(launch) for launch in recording.launches]

    def launch(self, stream: int = 0) -> None:
        """Issue every kernel, in the recorded order."""
        for config, function, parameters in self._launches:
            config.stream = stream
            cu.call("cuLaunchKernelEx", byref(config), function, parameters, None)

    def poison(self, pattern: int = 0x7FFF, stream: int = 0) -> None:
        """Fill scratch with NaN, so that nothing survives from the launch before; not tables."""
        for address in self._scratch:
            if address not in self._tables:
                size = cu.address_range(address)[1]
                cu.memset_d16(address, pattern, size, stream)

    def close(self) -> None:
        """Unload the code and free the scratch."""
        for module in self.modules.values() if self._owns_modules else ():
            cu.call("cuModuleUnload", module)
        for address in self._scratch:
            cu.mem_free(address)

    def _fill_tables(self, recording: Recording) -> None:
        """Write what `prepare()` had made into the buffers that hold it."""
        self._tables: set[int] = set()
        for buffer, address in zip(recording.buffers, self.addresses, strict=True):
            if buffer.name is None and buffer.table is not None and recording.tables is not None:
                for start in range(0, buffer.nbytes, PIECE_BYTES):
                    n_bytes = min(PIECE_BYTES, buffer.nbytes - start)
                    piece = recording.tables.read(buffer.table + start, n_bytes)
                    cu.copy_to_device(address + start, piece)
                self._tables.add(address)

    def _bind(self, launch: Launch) -> tuple[cu.LaunchConfig, c_void_p, Any]:
        function = c_void_p()
        cu.call(
            "cuModuleGetFunction",
            byref(function),
            self.modules[launch.cubin],
            launch.function.encode(),
        )
        _allow_shared(function, launch.shared_bytes)
        if launch.num_ctas == _NON_PORTABLE_CLUSTER:
            cu.call("cuFuncSetAttribute", function, cu.FUNC_NON_PORTABLE_CLUSTER, 1)
        values = [self._value(p) for p in launch.parameters]
        self._keep.append(values)
        pointers = (c_void_p * len(values))(*[ctypes.addressof(v) for v in values])
        return _config(launch), function, pointers

    def _value(self, parameter: Parameter) -> Any:
        """Return host memory that holds the parameter as the kernel reads it."""
        if isinstance(parameter, Literal):
            data = bytes.fromhex(parameter.hex)
            return (ctypes.c_ubyte * len(data)).from_buffer_copy(data)
        if isinstance(parameter, Pointer):
            return c_uint64(self._address(parameter))
        return self._tensor_map(parameter)

    def _address(self, place: Pointer | TensorMap) -> int:
        if place.buffer < 0:
            return 0
        return self.addresses[place.buffer] + place.offset

    def _tensor_map(self, spec: TensorMap) -> Any:
        """Encode with the driver: innermost dimension first, strides in bytes without it."""
        rank = len(spec.shape)
        block = memoryview(bytearray(_TENSOR_MAP_BYTES + _TENSOR_MAP_ALIGNMENT))
        whole = (ctypes.c_ubyte * len(block)).from_buffer(block)
        skip = -ctypes.addressof(whole) % _TENSOR_MAP_ALIGNMENT
        out = (ctypes.c_ubyte * _TENSOR_MAP_BYTES).from_buffer(block, skip)
        strides = [s * spec.element_bytes for s in reversed(spec.strides[:-1])]
        cu.call(
            "cuTensorMapEncodeTiled",
            out,
            c_int(spec.element_type),
            c_uint(rank),
            c_void_p(self._address(spec)),
            (c_uint64 * rank)(*reversed(spec.shape)),
            (c_uint64 * rank)(*strides),
            (c_uint * rank)(*reversed(spec.block)),
            (c_uint * rank)(*[1] * rank),
            _INTERLEAVE_NONE,
            spec.swizzle,
            _L2_PROMOTION_128B,
            1 if spec.nan_fill else 0,
        )
        return out


def _load(code: bytes) -> c_void_p:
    refuse_managed(code)
    module = c_void_p()
    cu.call("cuModuleLoadData", byref(module), code)
    return module


def _allow_shared(function: c_void_p, shared_bytes: int) -> None:
    """Raise the limit of dynamic shared memory as Triton's loader does."""
    static = c_int()
    cu.call("cuFuncGetAttribute", byref(static), cu.FUNC_SHARED_STATIC, function)
    if static.value + shared_bytes <= _DEFAULT_SHARED_BYTES:
        return
    limit = cu.device_attribute(cu.ATTR_MAX_SHARED_OPTIN) - static.value
    cu.call("cuFuncSetCacheConfig", function, cu.CACHE_PREFER_SHARED)
    cu.call("cuFuncSetAttribute", function, cu.FUNC_MAX_DYNAMIC_SHARED, limit)


def _config(launch: Launch) -> cu.LaunchConfig:
    wanted: list[tuple[int, tuple[int, ...]]] = []
    if launch.programmatic:
        wanted.append((_ATTR_PROGRAMMATIC, (1,)))
    if launch.cooperative:
        wanted.append((_ATTR_COOPERATIVE, (1,)))
    if launch.num_ctas > 1:
        wanted.append((_ATTR_CLUSTER, (launch.num_ctas, 1, 1)))
        wanted.append((_ATTR_CLUSTER_POLICY, (_CLUSTER_POLICY_SPREAD,)))
    attributes = (cu.LaunchAttribute * max(len(wanted), 1))()
    for slot, (number, value) in zip(attributes, wanted, strict=False):
        slot.id = number
        slot.value[: len(value)] = value
    x, y, z = launch.grid
    return cu.LaunchConfig(
        (x * launch.num_ctas, y, z),
        launch.block,
        launch.shared_bytes,
        None,
        attributes,
        len(wanted),
    )
