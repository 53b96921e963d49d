"""Enough of Gluon in torch to run the programs of prompts on a CPU and compare their values.

Tiles are whole tensors and layouts are ignored: the compiler checks those. What is checked here is
what it cannot: indices, masks, phases of barriers, and that no buffer is used before it is full.
Barriers count arrivals and bytes as mbarriers do (PTX ISA, "mbarrier"), partitions are threads, and
who waits for a phase that never comes fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

WAIT_S = 5.0
_local = threading.local()


class Barrier:
    """One mbarrier: a phase is complete when all arrivals and all bytes are there."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.phase, self.count, self.pending, self.nbytes = 0, 0, 0, 0
        self.copies: list[Callable[[], None]] = []

    def init(self, count: int) -> None:
        self.count = self.pending = count

    def add(self, *, arrivals: int = 0, nbytes: int = 0) -> None:
        with self.changed:
            self.pending -= arrivals
            self.nbytes += nbytes
            if self.pending == 0 and self.nbytes == 0:
                self.phase, self.pending = self.phase ^ 1, self.count
                self.changed.notify_all()

    def copy(self, land: Callable[[], None]) -> None:
        """Begin a copy, which lands when somebody waits for it: as late as it may."""
        with self.changed:
            self.copies.append(land)
            self.changed.notify_all()

    def wait(self, phase: int) -> None:
        def is_complete() -> bool:
            while self.copies:
                self.copies.pop(0)()
            return self.phase != phase

        with self.changed:
            came = self.changed.wait_for(is_complete, timeout=WAIT_S)
        assert came, f"a barrier waits for ever for phase {phase}"


class Tile:
    """Shared memory; holds NaN until it is written."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data

    def index(self, i: int) -> Tile:
        return Tile(self.data[i])

    def permute(self, order: Sequence[int]) -> Tile:
        return Tile(self.data.permute(*order))

    def store(self, value: torch.Tensor) -> None:
        self.data.copy_(value)


class Barriers:
    """Shared memory of barriers."""

    def __init__(self, n: int) -> None:
        self.all = [Barrier() for _ in range(n)]

    def index(self, i: int) -> Barrier:
        return self.all[i]


@dataclass
class Descriptor:
    """A host tensor descriptor of two dimensions: outside of the tensor it reads zeros."""

    base: torch.Tensor
    block_shape: list[int]
    layout: Any

    @classmethod
    def from_tensor(cls, base: torch.Tensor, block_shape: list[int], layout: Any) -> Descriptor:
        return cls(base, block_shape, layout)

    @property
    def dtype(self) -> torch.dtype:
        return self.base.dtype

    @property
    def block_type(self) -> Any:
        rows, columns = self.block_shape
        return SimpleNamespace(nbytes=rows * columns * self.base.element_size())

    def window(self, at: Sequence[int]) -> torch.Tensor:
        (row, column), (rows, columns) = at, self.block_shape
        return self.base[row : row + rows, column : column + columns]


def tma_load(desc: Descriptor, at: Sequence[int], bar: Barrier, tile: Tile) -> None:
    def land() -> None:
        found = desc.window(at)
        tile.data.zero_()
        tile.data[: found.shape[0], : found.shape[1]] = found
        bar.add(nbytes=-desc.block_type.nbytes)

    tile.data.fill_(float("nan"))  # from now on nobody knows what is in it
    bar.copy(land)


def tma_store(desc: Descriptor, at: Sequence[int], tile: Tile) -> None:
    window = desc.window(at)
    window.copy_(tile.data[: window.shape[0], : window.shape[1]])


def warpgroup_mma(
    a: Any, b: Tile, acc: torch.Tensor, *, use_acc: bool = True, is_async: bool = False
) -> torch.Tensor:
    left = a.data if isinstance(a, Tile) else a
    product = left.float() @ b.data.float()
    return acc + product if use_acc else product


@dataclass
class Pointer:
    """Addresses into a tensor's memory."""

    memory: torch.Tensor
    at: Any = 0

    def __add__(self, offsets: torch.Tensor) -> Pointer:
        return Pointer(self.memory, self.at + offsets)


def load(pointer: Pointer, mask: Any = None, other: float = 0.0) -> torch.Tensor:
    inside = torch.ones_like(pointer.at, dtype=torch.bool) if mask is None else mask
    values = pointer.memory[torch.where(inside, pointer.at, 0)]
    return torch.where(inside, values, torch.tensor(other, dtype=values.dtype))


def store(pointer: Pointer, value: torch.Tensor, mask: torch.Tensor) -> None:
    inside = mask.expand(value.shape)
    pointer.memory[pointer.at.expand(value.shape)[inside]] = value[inside]


def where(condition: torch.Tensor, x: Any, y: Any) -> torch.Tensor:
    dtype = (x if isinstance(x, torch.Tensor) else y).dtype
    return torch.where(condition, torch.as_tensor(x, dtype=dtype), torch.as_tensor(y, dtype=dtype))


class Kernel:
    """A jitted function: called from a kernel it is a function, with a grid it is a launch."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        def launch(*args: Any, num_warps: int = 4, **named: Any) -> None:
            memory = [Pointer(a.view(-1)) if isinstance(a, torch.Tensor) else a for a in args]
            for x in range(grid[0]):
                for y in range(grid[1] if len(grid) > 1 else 1):
                    _local.program = (x, y, num_warps)
                    self.function(*memory, **named)

        return launch


def warp_specialize(
    partitions: Sequence[tuple[Kernel, tuple[Any, ...]]],
    worker_num_warps: Sequence[int],
    worker_num_regs: Sequence[int],
) -> None:
    program, failures = _local.program, []

    def run(kernel: Kernel, args: tuple[Any, ...]) -> None:
        _local.program = program
        try:
            kernel(*args)
        except BaseException as exc:  # noqa: BLE001  raised again below
            failures.append(exc)

    threads = [threading.Thread(target=run, args=part) for part in partitions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


def allocate(dtype: torch.dtype, shape: Sequence[int], layout: Any) -> Tile | Barriers | Barrier:
    if dtype is torch.int64:  # the programs have no other use for it in shared memory
        return Barrier() if len(shape) == 1 else Barriers(shape[0])
    return Tile(torch.full(tuple(shape), float("nan"), dtype=dtype))


def _program_id(axis: int) -> torch.Tensor:
    return torch.tensor(_local.program[axis])


def _named(*names: str) -> dict[str, Callable[..., Any]]:
    return dict.fromkeys(names, lambda *args, **named: (args, named))


def names() -> dict[str, Any]:
    """Return what the programs import, by the names that they use."""
    gl = SimpleNamespace(
        constexpr=None, int64=torch.int64, float32=torch.float32, program_id=_program_id,
        num_warps=lambda: _local.program[2], cdiv=lambda a, b: -(-int(a) // b),
        arange=lambda start, end, layout: torch.arange(start, end), static_range=range,
        zeros=lambda shape, dtype, layout: torch.zeros(shape, dtype=dtype),
        full=lambda shape, value, dtype, layout: torch.full(shape, value, dtype=dtype),
        max=lambda x, axis: x.amax(axis), sum=lambda x, axis: x.sum(axis), exp2=torch.exp2,
        maximum=torch.maximum, convert_layout=lambda x, layout: x, load=load, store=store,
        where=where,
        allocate_shared_memory=allocate, warp_specialize=warp_specialize,
        **_named("NVMMADistributedLayout", "NVMMASharedLayout", "SliceLayout", "BlockedLayout",
                 "DotOperandLayout"),
    )  # fmt: skip
    mbarrier = SimpleNamespace(
        MBarrierLayout=lambda: None, init=lambda bar, count: bar.init(count),
        expect=lambda bar, nbytes: bar.add(arrivals=1, nbytes=nbytes),
        wait=lambda bar, phase: bar.wait(int(phase)),
        arrive=lambda bar, count: bar.add(arrivals=count),
    )  # fmt: skip
    tma = SimpleNamespace(async_load=tma_load, async_store=tma_store, store_wait=lambda n: None)
    triton = SimpleNamespace(
        cdiv=lambda a, b: -(-a // b), next_power_of_2=lambda n: 1 << (n - 1).bit_length()
    )
    return {
        "gl": gl, "gluon": SimpleNamespace(jit=Kernel), "mbarrier": mbarrier, "tma": tma,
        "triton": triton, "torch": torch, "TensorDescriptor": Descriptor,
        "warpgroup_mma": warpgroup_mma, "fence_async_shared": lambda: None,
        "warpgroup_mma_wait": lambda n, deps: deps[0] if len(deps) == 1 else deps,
    }  # fmt: skip


def run_program(source: str) -> dict[str, Any]:
    """Execute a program's definitions, without its imports, and return its names."""
    start = source.index("@gluon.jit")
    constants = source[:start].rsplit("\n\n\n", 1)[0].rsplit("\n\n", 1)[-1]
    namespace = names()
    exec(constants if "=" in constants and "import" not in constants else "", namespace)
    exec(source[start:], namespace)
    return namespace
