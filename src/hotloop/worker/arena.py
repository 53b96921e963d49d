"""The buffers that judge and candidate share.

One allocation holds every tensor that crosses: inputs and outputs of several sets, parameters and
buffers. On `cuda` it is plain device memory handed over by CUDA IPC, on `cpu` a memfd. The judge
makes it, the candidate maps it; the judge must outlive the mapping. What lies in it is data.

Red zones: the gaps between slots hold a pattern that the judge checks after calls. It is NaN, so
that what a kernel reads beside a tensor shows in its results, also where it is multiplied by 0.
"""

from __future__ import annotations

import base64
import fcntl
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

from hotloop.worker import cudriver

ALIGN_BYTES = 512
"""Where tensors begin; torch's own allocator keeps to it too."""
GAP_BYTES = 4096
GAP_PATTERN = (0xFD, 0x7F)
"""Bytes at even and at odd addresses: NaN in float16, bfloat16, float32 and float64, and not the
one that a GPU itself makes of 0/0, nor -1, which stores out of bounds might well write."""
GRANULE_BYTES = 2 << 20
_FIXED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Offset(StrEnum):
    """How far past an aligned address a tensor begins, as a slice of a larger one may."""

    NONE = "none"
    SIXTEEN = "sixteen"
    """16 bytes: what vector loads and tensor-map copies still accept."""
    ELEMENT = "element"
    """One element: what a kernel accepts that assumes nothing."""

    def bytes_of(self, dtype: torch.dtype) -> int:
        """Return the offset of a tensor of this dtype."""
        return {Offset.NONE: 0, Offset.SIXTEEN: 16, Offset.ELEMENT: dtype.itemsize}[self]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one tensor lies in the arena."""

    offset: int
    """Bytes from the start of the arena."""
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""
    dtype: str
    """Name without the `torch.` prefix."""

    @property
    def span_bytes(self) -> int:
        """Bytes from the first to past the last element."""
        if 0 in self.shape:
            return 0
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (last + 1) * torch_dtype(self.dtype).itemsize

    def to_json(self) -> dict[str, Any]:
        """Return the slot as plain JSON values."""
        return {
            "offset": self.offset,
            "shape": list(self.shape),
            "strides": list(self.strides),
            "dtype": self.dtype,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Slot:
        """Rebuild a slot."""
        return cls(data["offset"], tuple(data["shape"]), tuple(data["strides"]), data["dtype"])


class Layout:
    """Places tensors one after the other, aligned, with a gap after each."""

    def __init__(self) -> None:
        self.size_bytes = GAP_BYTES
        self.gaps: list[tuple[int, int]] = [(0, GAP_BYTES)]

    def place(
        self,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: torch.dtype,
        *,
        offset: Offset = Offset.NONE,
    ) -> Slot:
        """Reserve room for one tensor, `offset` past an aligned address, and return where it lies.

        The bytes before a tensor that is offset belong to the red zone.
        """
        aligned = -(-self.size_bytes // ALIGN_BYTES) * ALIGN_BYTES
        start = aligned + offset.bytes_of(dtype)
        self.gaps[-1] = (self.gaps[-1][0], start)  # one of them ended where this one begins
        slot = Slot(start, tuple(shape), tuple(strides), dtype_name(dtype))
        end = start + slot.span_bytes
        self.gaps.append((end, end + GAP_BYTES))
        self.size_bytes = end + GAP_BYTES
        return slot

    def place_like(self, tensor: torch.Tensor, *, offset: Offset = Offset.NONE) -> Slot:
        """Reserve room for a tensor of this shape, stride and dtype."""
        return self.place(tensor.shape, tensor.stride(), tensor.dtype, offset=offset)


class Arena:
    """One shared allocation; `bytes` is a uint8 tensor over all of it."""

    def __init__(self, data: torch.Tensor, token: dict[str, Any], owner: Any) -> None:
        self.bytes = data
        self.token = token
        """What the other process needs to map it (JSON values); `fd` is passed apart."""
        self._owner = owner
        self._patterns: torch.Tensor | None = None
        self._expected: tuple[Layout, torch.Tensor] | None = None

    @classmethod
    def create(cls, device: str, size_bytes: int) -> Arena:
        """Allocate on `device`.

        Raises:
            MemoryError: the device or the machine has too little memory.
        """
        if device == "cpu":
            return _create_host(size_bytes)
        return _create_device(size_bytes)

    @classmethod
    def open(cls, token: dict[str, Any], fd: int | None) -> Arena:
        """Map in the candidate what `create` made in the judge."""
        if token["device"] == "cpu":
            if fd is None:
                raise ValueError("a host arena needs its descriptor")
            return _map_host(fd, token["size_bytes"])
        return _open_device(token)

    @property
    def fd(self) -> int | None:
        """The descriptor to hand over; None on `cuda`."""
        return self._owner.fd if isinstance(self._owner, _HostMapping) else None

    def view(self, slot: Slot) -> torch.Tensor:
        """Return the tensor that lies in `slot`; shares the arena's memory.

        Its version is its own: what is written into another slot does not count it up.

        Raises:
            ValueError: the slot reaches outside the arena.
        """
        dtype = torch_dtype(slot.dtype)
        if slot.offset < 0 or slot.offset + slot.span_bytes > self.bytes.numel():
            raise ValueError(f"slot at {slot.offset} reaches outside the arena")
        if slot.span_bytes == 0:
            return torch.empty(slot.shape, dtype=dtype, device=self.bytes.device)
        return self._flat(slot).view(dtype).as_strided(slot.shape, slot.strides).data

    def _flat(self, slot: Slot) -> torch.Tensor:
        if not isinstance(self._owner, _HostMapping):
            return self.bytes[slot.offset : slot.offset + slot.span_bytes]
        # With a storage of its own: the interpreter holds accesses against a tensor's storage.
        return torch.frombuffer(
            self._owner.mapping, dtype=torch.uint8, offset=slot.offset, count=slot.span_bytes
        )

    def fill_gaps(self, layout: Layout) -> None:
        """Write the red-zone pattern."""
        for start, end in layout.gaps:
            self.bytes[start:end].copy_(self._pattern(start, end))

    def gaps_intact(self, layout: Layout) -> bool:
        """Whether nobody wrote between the slots."""
        parts = [self.bytes[start:end] for start, end in layout.gaps]
        if self._expected is None or self._expected[0] is not layout:
            pattern = [self._pattern(start, end) for start, end in layout.gaps]
            self._expected = (layout, torch.cat(pattern))
        return torch.equal(torch.cat(parts), self._expected[1])

    def _pattern(self, start: int, end: int) -> torch.Tensor:
        if self._patterns is None:
            pair = torch.tensor(GAP_PATTERN, dtype=torch.uint8, device=self.bytes.device)
            self._patterns = pair.repeat(GAP_BYTES)
        return self._patterns[start % 2 :][: end - start]

    def close(self) -> None:
        """Free the allocation; only after the candidate is gone."""
        owner, self._owner = self._owner, None
        self._patterns = self._expected = None
        self.bytes = torch.empty(0, dtype=torch.uint8)
        if owner is not None:
            owner.free()


def torch_dtype(name: str) -> torch.dtype:
    """Return the torch dtype called `name`.

    Raises:
        ValueError: there is none.
    """
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"expected the name of a torch dtype, got {name!r}")
    return dtype


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype's name without the `torch.` prefix."""
    return str(dtype).removeprefix("torch.")


class _HostMapping:
    def __init__(self, fd: int, mapping: mmap.mmap) -> None:
        self.fd = fd
        self.mapping = mapping

    def free(self) -> None:
        os.close(self.fd)  # the mapping ends with the last tensor that views it


def _create_host(size_bytes: int) -> Arena:
    fd = os.memfd_create("hotloop-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size_bytes)
    # A candidate that cut it would end whoever looks into the lost part next: the judge.
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _FIXED)
    return _map_host(fd, size_bytes)


def _map_host(fd: int, size_bytes: int) -> Arena:
    mapping = mmap.mmap(fd, size_bytes)
    data = torch.frombuffer(mapping, dtype=torch.uint8)
    return Arena(data, {"device": "cpu", "size_bytes": size_bytes}, _HostMapping(fd, mapping))


class _DeviceMemory:
    """Device memory seen by torch through the CUDA array interface."""

    def __init__(self, pointer: int, size_bytes: int, *, ours: bool) -> None:
        self.pointer = pointer
        self.ours = ours
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (pointer, False),
            "version": 3,
        }

    def free(self) -> None:
        torch.cuda.synchronize()
        release = cudriver.mem_free if self.ours else cudriver.ipc_close
        release(self.pointer)


def _create_device(size_bytes: int) -> Arena:
    _make_context_current()
    # Whole driver granules: a handle names the granule, and nothing else may lie in ours.
    size_bytes = -(-size_bytes // GRANULE_BYTES) * GRANULE_BYTES
    try:
        pointer = cudriver.mem_alloc(size_bytes)
    except cudriver.CudaDriverError as exc:
        if exc.code != cudriver.OUT_OF_MEMORY:
            raise
        raise MemoryError(f"the GPU has no {size_bytes >> 20} MiB left") from exc
    memory = _DeviceMemory(pointer, size_bytes, ours=True)
    token = {
        "device": "cuda",
        "size_bytes": size_bytes,
        "handle": base64.b64encode(cudriver.ipc_export(pointer)).decode(),
    }
    return Arena(torch.as_tensor(memory, device="cuda"), token, memory)


def _open_device(token: dict[str, Any]) -> Arena:
    _make_context_current()
    pointer = cudriver.ipc_open(base64.b64decode(token["handle"]))
    memory = _DeviceMemory(pointer, token["size_bytes"], ours=False)
    return Arena(torch.as_tensor(memory, device="cuda"), token, memory)


def _make_context_current() -> None:
    torch.cuda.init()
    torch.cuda.current_stream().synchronize()
