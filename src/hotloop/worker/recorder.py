"""Record the Triton launches of one forward, so that they can be replayed without its Python.

Runs in the candidate process, installed before the candidate is imported. It stands where Triton
makes a launcher for a compiled kernel (`driver.active.launcher_cls`): every way to launch (plain,
autotuned, heuristics, `warmup` then `kernel[grid]`, Gluon) ends there, with the grid resolved and
the arguments bound. `knobs.runtime.launch_enter_hook` is no use: it is given no arguments.
Not a guard: a candidate can defeat it, and then its replay computes something else, which the
judge sees. Launches that do not come from Triton (library calls, copies) are not recorded; the
caller compares the number of launches with the kernel activity of the same forward.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hotloop.worker.launches import Launches
from hotloop.worker.recording import (
    Buffer,
    Launch,
    Literal,
    Parameter,
    Pointer,
    Recording,
    TensorMap,
)
from hotloop.worker.tables import MAX_TABLES_BYTES, PIECE_BYTES, TableWriter

_SCALARS: dict[str, Any] = {
    "i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
    "i64": ctypes.c_int64, "u1": ctypes.c_uint8, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "fp32": ctypes.c_float,
    "f32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip
# Triton numbers TMA element types differently in device code and for the driver.
_TMA_ELEMENT_TYPE = {8: 10, 9: 8, 10: 9}
_FIELDS_BEFORE_ARGS = 4  # packed metadata, launch metadata, enter hook, exit hook


class UnreplayableError(Exception):
    """The forward does something that a replay cannot reproduce; the result is `host_path`."""


class Recorder:
    """Wrap Triton's launchers; between `start` and `finish`, note every launch."""

    def __init__(self, launches: Launches | None = None) -> None:
        self.seen = launches or Launches()
        self._cubin_of: dict[int, str] = {}  # function handle -> cubin hash
        self._cubins: dict[str, bytes] = {}
        self._tables = TableWriter()
        self.recording = False

    def install(self) -> None:
        """Take Triton's place of making launchers; call before any kernel is loaded."""
        from triton import knobs
        from triton.runtime import driver

        make = driver.active.launcher_cls
        driver.active.launcher_cls = lambda src, metadata: _Launcher(
            make(src, metadata), src, metadata, self
        )
        knobs.runtime.kernel_load_end_hook.add(self._on_load)

    def _on_load(
        self, module: Any, function: Any, name: str, files: Mapping[str, str], hash: str
    ) -> None:
        cubin = Path(next(p for f, p in files.items() if f.endswith(".cubin"))).read_bytes()
        digest = hashlib.sha256(cubin).hexdigest()
        self._cubins[digest], self._cubin_of[function] = cubin, digest

    def start(self, known: Mapping[str, Any]) -> None:
        """Begin; `known` maps the problem's buffer names to tensors the forward may read."""
        self._buffers: list[Buffer] = []
        self._launches: list[Launch] = []
        self._tables = TableWriter()
        self._streams: set[int] = set()
        self._number_of: dict[int, int] = {}  # storage address -> buffer number
        self._alive: list[Any] = []  # keeps each storage, so that an address names one buffer
        self._older = _allocated_ranges()
        for name, tensor in known.items():
            self._add(tensor.untyped_storage(), name)
        self.recording = True

    def finish(self, outputs: Sequence[Any]) -> Recording:
        """End, and describe where the forward's outputs lie. Raises: UnreplayableError."""
        self.recording = False
        if len(self._streams) > 1:
            raise UnreplayableError("launches on more than one stream: their order is not recorded")
        used = {
            p.buffer for x in self._launches for p in x.parameters if not isinstance(p, Literal)
        }
        places = []
        for tensor, place in ((t, self._locate(t)) for t in outputs):
            if place.buffer not in used:
                raise UnreplayableError("an output was not touched by any recorded launch")
            places.append(
                {
                    "buffer": place.buffer,
                    "offset": place.offset,
                    "shape": list(tensor.shape),
                    "stride": list(tensor.stride()),
                    "dtype": str(tensor.dtype).removeprefix("torch."),
                }
            )
        cubins = {x.cubin: self._cubins[x.cubin] for x in self._launches}
        return Recording(tuple(self._buffers), tuple(self._launches), tuple(places), cubins)

    def take_tables(self) -> int | None:
        """Return the sealed file of what older memory held, the caller's to close; None without."""
        return self._tables.seal()

    def stop(self) -> None:
        """Note nothing more and let go of what was noted, however the recording ended."""
        self.recording = False
        self._tables.close()
        self._alive, self._launches, self._buffers = [], [], []

    def note(
        self,
        launcher: _Launcher,
        grid: tuple[int, int, int],
        stream: int,
        function: int,
        args: Sequence[Any],
    ) -> None:
        """Record one launch (called by the launcher, before the launch itself)."""
        meta = launcher.metadata
        parameters = list(self._parameters(launcher.signature, args, launcher.tma_metadata))
        for nbytes in (meta.global_scratch_size, meta.profile_scratch_size):
            total = nbytes * grid[0] * grid[1] * grid[2] * meta.num_ctas
            parameters.append(self._scratch(total) if total else Pointer(-1, 0))
        self._streams.add(stream)
        self._launches.append(
            Launch(
                self._cubin_of[function],
                meta.name,
                grid,
                (32 * meta.num_warps, 1, 1),
                meta.num_ctas,
                meta.shared,
                bool(meta.launch_cooperative_grid),
                bool(meta.launch_pdl),
                tuple(parameters),
            )
        )

    def _parameters(
        self, signature: Sequence[Any], args: Sequence[Any], tma: Iterator[Any]
    ) -> Iterator[Parameter]:
        for kind, arg in zip(signature, args, strict=True):
            if kind == "constexpr":
                continue
            if isinstance(kind, tuple):
                yield from self._parameters(kind, arg, tma)
            elif kind.startswith("tensordesc"):
                yield from self._descriptor(arg, next(tma, None))
            elif kind[0] == "*":
                yield self._locate(arg)
            else:
                yield Literal(pack_scalar(kind, arg).hex())

    def _descriptor(self, arg: Any, meta: Mapping[str, Any] | None) -> Iterator[Parameter]:
        """Expand a host TensorDescriptor as Triton's launcher does."""
        place, shape, strides = self._locate(arg.base), tuple(arg.shape), tuple(arg.strides)
        if meta is None:  # lowered without TMA: pointer, shape, strides, padding as plain values
            yield place
            yield from (Literal(pack_scalar("i64", v).hex()) for v in (*shape, *strides))
            yield Literal(pack_scalar("i1", arg.padding == "nan").hex())
        elif meta.get("is_im2col") or getattr(arg, "round_f32_to_tf32", False):
            raise UnreplayableError("im2col and TF32-rounding descriptors are not recorded")
        else:
            wide = (*shape[:-1], shape[-1] * 2) if meta["fp4_padded"] else shape
            yield TensorMap(
                place.buffer,
                place.offset,
                _TMA_ELEMENT_TYPE.get(meta["elem_type"], meta["elem_type"]),
                meta["elem_size"],
                meta["swizzle"],
                tuple(meta["block_size"]),
                wide,
                strides,
                arg.padding == "nan",
            )
        yield from (Literal(pack_scalar("i32", v).hex()) for v in shape)
        yield from (Literal(pack_scalar("i64", v).hex()) for v in strides)

    def _locate(self, arg: Any) -> Pointer:
        if arg is None:
            return Pointer(-1, 0)
        tensor = getattr(arg, "base", arg)  # triton.reinterpret wraps a tensor
        if not hasattr(tensor, "untyped_storage"):
            raise UnreplayableError(f"a pointer argument is a {type(arg).__name__}, not a tensor")
        storage = tensor.untyped_storage()
        number = self._number_of.get(storage.data_ptr())
        if number is None:
            number = self._add(storage, None)
        return Pointer(number, arg.data_ptr() - storage.data_ptr())

    def _add(self, storage: Any, name: str | None) -> int:
        address = storage.data_ptr()
        table = None
        if name is None and any(lo <= address < hi for lo, hi in self._older):
            table = add_table(self._tables, storage)
        self._number_of[address] = len(self._buffers)
        self._buffers.append(Buffer(name, storage.nbytes(), table))
        self._alive.append(storage)
        return self._number_of[address]

    def _scratch(self, nbytes: int) -> Pointer:
        self._buffers.append(Buffer(None, nbytes))
        return Pointer(len(self._buffers) - 1, 0)


class _Launcher:
    """Triton's launcher of one compiled kernel, with the recorder looking over its shoulder."""

    def __init__(self, inner: Callable[..., None], src: Any, metadata: Any, to: Recorder) -> None:
        self.inner, self.metadata, self.recorder = inner, metadata, to
        self.signature = tuple(src.signature.values())

    @property
    def tma_metadata(self) -> Iterator[Any]:
        return iter(getattr(self.metadata, "tensordesc_meta", None) or ())

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
        recorder = self.recorder
        if recorder.recording:
            recorder.note(self, (x, y, z), stream, function, rest[_FIELDS_BEFORE_ARGS:])
        if not recorder.seen.watching:
            recorder.seen.unwatched += 1
            self.inner(x, y, z, stream, function, *rest)
            return
        # What a hook around the launch does is no kernel's work: it runs beside, not inside.
        packed, described, enter, leave, *arguments = rest
        plain = (packed, described, None, None, *arguments)
        if enter is not None:
            enter(described)
        recorder.seen.run(arguments, lambda: self.inner(x, y, z, stream, function, *plain))
        if leave is not None:
            leave(described)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def add_table(tables: TableWriter, storage: Any) -> int:
    """Add the content of memory that `prepare()` filled; return where it begins in the file.

    Raises:
        UnreplayableError: the tables would be too large together.
    """
    import torch

    total = tables.size_bytes + storage.nbytes()
    if total > MAX_TABLES_BYTES:
        raise UnreplayableError(
            f"launches read {total} bytes that are older than this forward; at most "
            f"{MAX_TABLES_BYTES} are recorded"
        )
    data = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return tables.add(part.cpu().numpy() for part in data.split(PIECE_BYTES))


def pack_scalar(kind: str, value: Any) -> bytes:
    """Pack a by-value argument as Triton's launcher does (bf16 is cut off, not rounded)."""
    if kind == "fp16":
        return struct.pack("<e", value)
    if kind == "bf16":
        return bytes(ctypes.c_float(value))[2:]
    if kind not in _SCALARS:
        raise UnreplayableError(f"a kernel argument of type {kind!r} is not recorded")
    return bytes(_SCALARS[kind](value))


def _allocated_ranges() -> list[tuple[int, int]]:
    """Return [start, end) of each block that torch's caching allocator has handed out."""
    import torch

    return [
        (block["address"], block["address"] + block["size"])
        for segment in torch.cuda.memory_snapshot()
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    ]
