"""Emulated operations of Hopper: mbarriers, TMA copies, asynchronous wgmma, shared memory."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from gluon_machine import current
from gluon_memory import UNFINISHED, Barrier, KernelFault, Slot
from gluon_values import DTYPES, Dtype, Tile, raw

_COPIES = itertools.count()


class SharedView:
    """A buffer of shared memory, seen in some shape."""

    def __init__(self, slot: Slot, see: Callable[[np.ndarray], np.ndarray]) -> None:
        self.slot, self._see = slot, see

    def reshape(self, shape: Sequence[int]) -> SharedView:
        """See the same values in another shape."""
        return SharedView(self.slot, lambda x: self._see(x).reshape([int(n) for n in shape]))

    def permute(self, order: Sequence[int]) -> SharedView:
        """See the axes in another order."""
        return SharedView(self.slot, lambda x: self._see(x).transpose(order))

    def read(self) -> np.ndarray:
        """Return the values."""
        return self._see(self.slot.data)

    def store(self, value: Tile) -> None:
        """Write from registers."""
        block, slot = current(), self.slot
        block.turn()
        block.check_write(slot, "a store")
        slot.data[...] = slot.dtype.rounded(raw(value)).reshape(slot.data.shape)
        block.me.unfenced.append(slot)
        block.note_write(slot)


class Shared:
    """An allocation: its first axis counts buffers."""

    def __init__(self, shape: Sequence[int], dtype: Dtype) -> None:
        sizes = [int(n) for n in shape]
        empty = [np.full(sizes[1:], np.nan, np.float32) for _ in range(sizes[0])]
        self.slots = [Slot(f"buffer {i}", data, dtype) for i, data in enumerate(empty)]

    def index(self, i: Any) -> SharedView:
        """Return one buffer."""
        return SharedView(self.slots[_place(i, len(self.slots))], lambda x: x)


class Barriers:
    """An allocation of barriers."""

    def __init__(self, count: int) -> None:
        self.slots = [Barrier() for _ in range(count)]

    def index(self, i: Any) -> Barrier:
        """Return one barrier."""
        return self.slots[_place(i, len(self.slots))]


def _place(i: Any, count: int) -> int:
    place = int(raw(i))
    if not 0 <= place < count:
        raise KernelFault(f"index {place} of {count} buffers")
    return place


def allocate_shared_memory(dtype: Dtype, shape: Sequence[int], layout: Any) -> Any:
    """Return buffers, or barriers where the layout is theirs."""
    return Barriers(int(shape[0])) if layout == "barriers" else Shared(shape, dtype)


def warp_specialize(parts: Any, worker_num_warps: Any, worker_num_regs: Any) -> None:
    """Run partitions side by side; buffers get the names that the kernel gave them."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    for name, value in frame.f_back.f_locals.items():
        if isinstance(value, Shared | Barriers):
            for i, slot in enumerate(value.slots):
                slot.name = f"{name}[{i}]"
    if not len(parts) - 1 == len(worker_num_warps) == len(worker_num_regs):
        raise KernelFault("warps and registers are not given for each worker")
    current().specialize(parts)


# --- mbarrier ---


def _init(barrier: Barrier, count: int) -> None:
    barrier.init(count)


def _expect(barrier: Barrier, n_bytes: int) -> None:
    current().turn()
    barrier.arrive(current().now(), bytes_due=int(n_bytes))


def _arrive(barrier: Barrier, count: int = 1) -> None:
    current().turn()
    barrier.arrive(current().now(), count=count)


def _wait(barrier: Barrier, phase: Any, pred: Any = True) -> None:
    if raw(pred):
        current().wait(barrier, int(raw(phase)))


# --- TMA ---


@dataclass
class Descriptor:
    """A tensor map: a tensor in boxes; what is outside the tensor reads as 0."""

    base: Any
    block_shape: list[int]
    layout: Any
    array: np.ndarray | None = None

    @classmethod
    def from_tensor(cls, tensor: Any, block_shape: Sequence[int], layout: Any) -> Descriptor:
        """Describe a tensor, as the host does."""
        size = tensor.element_size()
        if any(stride * size % 16 for stride in tensor.stride()[:-1]) or tensor.stride()[-1] != 1:
            raise KernelFault(f"strides {tensor.stride()} are not those of a tensor map")
        if any(n & (n - 1) or n > 256 for n in block_shape):
            raise KernelFault(f"a box of {list(block_shape)}")
        return cls(tensor, [int(n) for n in block_shape], layout)

    def bound_to(self, array: np.ndarray) -> Descriptor:
        """Return the descriptor with the values that the device sees."""
        return Descriptor(self.base, self.block_shape, self.layout, array)

    @property
    def box_bytes(self) -> int:
        """Bytes that a copy announces to its barrier: the whole box."""
        return int(np.prod(self.block_shape)) * int(self.base.element_size())

    def parts(self, coord: Sequence[Any]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Return what of the tensor a box covers, and where in the box that is."""
        assert self.array is not None
        inside, within = [], []
        for start, length, box in zip(coord, self.array.shape, self.block_shape, strict=True):
            low = int(raw(start))
            first, last = min(max(low, 0), length), min(max(low + box, 0), length)
            inside.append(slice(first, last))
            within.append(slice(first - low, last - low) if last > first else slice(0, 0))
        return tuple(inside), tuple(within)


def _copy_in(desc: Descriptor, coord: Any, barrier: Barrier, view: SharedView) -> None:
    block, slot = current(), view.slot
    block.turn()
    block.check_write(slot, "a copy")
    if list(slot.data.shape) != desc.block_shape:
        raise KernelFault(f"a box of {desc.block_shape} does not fit {slot.name}")
    name = f"copy {next(_COPIES)}"
    slot.copying, slot.written = name, (name, 1)
    slot.reads.clear()
    slot.data[...] = np.nan
    clock = {**block.now(), name: 1}

    def copy() -> None:
        assert desc.array is not None
        inside, within = desc.parts(coord)
        slot.data[...] = 0.0
        slot.data[within] = desc.array[inside]
        slot.copying = None
        barrier.complete(desc.box_bytes, clock)

    block.start_copy(copy)


def _copy_out(desc: Descriptor, coord: Any, view: SharedView) -> None:
    block, slot = current(), view.slot
    block.turn()
    block.check_read(slot, "a copy")
    if slot in block.me.unfenced:
        raise KernelFault(f"a copy reads {slot.name} without a fence after the stores to it")
    inside, within = desc.parts(coord)

    def copy() -> None:
        assert desc.array is not None
        desc.array[inside] = slot.data[within]

    slot.reads[block.me.name] = UNFINISHED
    block.me.stores.append((slot, copy))
    block.start_copy(copy)


def _store_wait(pendings: int) -> None:
    if pendings != 0:
        raise KernelFault("only a wait for all copies is emulated")
    current().turn()
    current().finish_stores()


def fence_async_shared() -> None:
    """Let the copy engine see what the running partition wrote."""
    current().me.unfenced.clear()


# --- wgmma ---


@dataclass
class Product:
    """A wgmma that was issued; its operands are read until it is awaited."""

    a: Tile | SharedView
    b: SharedView
    acc: np.ndarray
    result: Tile | None = None

    def shared(self) -> list[SharedView]:
        """Return the operands in shared memory."""
        return [x for x in (self.a, self.b) if isinstance(x, SharedView)]

    def finish(self) -> None:
        """Compute, from what the operands hold now."""
        a = self.a.read() if isinstance(self.a, SharedView) else self.a.array
        self.result = Tile(self.acc + a.astype(np.float32) @ self.b.read())
        for view in self.shared():
            current().note_read(view.slot)


def warpgroup_mma(a: Any, b: Any, acc: Any, use_acc: bool = True, is_async: bool = False) -> Any:
    """Issue acc + a b."""
    if isinstance(acc, Product):
        raise KernelFault("an accumulator is used before it was awaited")
    block = current()
    block.turn()
    product = Product(a, b, acc.array if use_acc else np.zeros_like(acc.array))
    for view in product.shared():
        block.check_read(view.slot, "wgmma")
        if view.slot in block.me.unfenced:
            raise KernelFault(f"wgmma reads {view.slot.name} without a fence")
        view.slot.reads[block.me.name] = UNFINISHED
    block.me.products.append(product)
    return product if is_async else warpgroup_mma_wait(0, [product])


def warpgroup_mma_wait(num_outstanding: int, deps: Sequence[Product]) -> Any:
    """Wait until at most so many products are under way; return the finished ones of `deps`."""
    block = current()
    block.turn()
    while len(block.me.products) > num_outstanding:
        block.me.products.popleft().finish()
    results = []
    for dep in deps:
        if dep.result is None:
            raise KernelFault("a wait returns a product that may be under way")
        results.append(dep.result)
    return results[0] if len(results) == 1 else tuple(results)


def hopper_names() -> dict[str, Any]:
    """Return what `gluon.language.nvidia.hopper` offers."""
    return {
        "fence_async_shared": fence_async_shared,
        "warpgroup_mma": warpgroup_mma,
        "warpgroup_mma_wait": warpgroup_mma_wait,
        "mbarrier": SimpleNamespace(
            MBarrierLayout=lambda: "barriers",
            init=_init,
            expect=_expect,
            arrive=_arrive,
            wait=_wait,
        ),
        "tma": SimpleNamespace(
            async_copy_global_to_shared=_copy_in,
            async_copy_shared_to_global=_copy_out,
            store_wait=_store_wait,
        ),
    }


__all__ = ["DTYPES", "Descriptor", "allocate_shared_memory", "hopper_names", "warp_specialize"]
