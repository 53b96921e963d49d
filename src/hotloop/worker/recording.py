"""The launches of one forward as data: what the recorder writes and the replayer reads.

A recording holds no Python of the candidate: machine code (cubins by content hash), and for each
launch its grid, resources and parameter bytes, in which every address is replaced by (buffer,
offset). Buffers with a name belong to the problem (inputs, parameters, outputs); buffers without
one are scratch that the forward allocated, or tables that were there before it; what tables held
comes in a file of its own (`tables.py`). A recording comes from an untrusted process: `from_json`
checks every index and range.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hotloop.worker.tables import Tables

MAX_THREADS = 1024
"""Of one block (CUDA Programming Guide, "Compute Capabilities")."""


@dataclass(frozen=True)
class Buffer:
    """Device memory that launches refer to; `name` is None for memory of the forward's own.

    `table` says where in the tables' file, in bytes, lies what memory older than the forward held.
    """

    name: str | None
    nbytes: int
    table: int | None = None


@dataclass(frozen=True)
class Literal:
    """A by-value parameter, packed as the kernel reads it."""

    hex: str


@dataclass(frozen=True)
class Pointer:
    """An address: `offset` bytes into buffer number `buffer`; buffer -1 is the null pointer."""

    buffer: int
    offset: int


@dataclass(frozen=True)
class TensorMap:
    """A tiled TMA descriptor, innermost dimension last (as Triton states it)."""

    buffer: int
    offset: int
    element_type: int  # CUtensorMapDataType
    element_bytes: int
    swizzle: int  # CUtensorMapSwizzle
    block: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    nan_fill: bool


Parameter = Literal | Pointer | TensorMap
_KINDS: dict[str, type] = {"literal": Literal, "pointer": Pointer, "tensor_map": TensorMap}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True)
class Launch:
    """One kernel launch. `grid` is in clusters along x, as Triton counts it; `block` in threads."""

    cubin: str  # sha256 of the machine code
    function: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    num_ctas: int
    shared_bytes: int
    cooperative: bool
    programmatic: bool  # programmatic dependent launch
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Recording:
    """Buffers, launches in order, and where each output lies."""

    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]
    outputs: tuple[dict[str, Any], ...]  # buffer, offset, shape, stride, dtype
    cubins: dict[str, bytes]
    tables: Tables | None = field(default=None, compare=False)
    """Where it is to be launched: what the buffers with a `table` hold."""

    def to_json(self) -> str:
        """Serialise all but the cubins."""
        launches = []
        for launch in self.launches:
            row = {k: v for k, v in vars(launch).items() if k != "parameters"}
            row["parameters"] = [{"kind": _NAMES[type(p)], **asdict(p)} for p in launch.parameters]
            launches.append(row)
        return json.dumps(
            {
                "buffers": [asdict(b) for b in self.buffers],
                "launches": launches,
                "outputs": list(self.outputs),
            }
        )

    def to_answer(self) -> dict[str, Any]:
        """Return what a process answers that was asked for its launches: all but the tables."""
        cubins = {key: base64.b64encode(code).decode() for key, code in self.cubins.items()}
        return {"recording": self.to_json(), "cubins": cubins}

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any], tables: Tables | None = None) -> Recording:
        """Undo `to_answer`; see `from_json` for what it checks."""
        cubins = {key: base64.b64decode(code) for key, code in answer["cubins"].items()}
        return cls.from_json(answer["recording"], cubins, tables)

    @classmethod
    def from_json(
        cls, text: str, cubins: dict[str, bytes], tables: Tables | None = None
    ) -> Recording:
        """Parse and check; raise ValueError (or TypeError, KeyError) on anything malformed."""
        raw = json.loads(text)
        buffers = tuple(_buffer(row, tables) for row in raw["buffers"])
        launches = tuple(_launch(row, buffers, cubins) for row in raw["launches"])
        for output in raw["outputs"]:
            _check_address(output["buffer"], output["offset"], buffers)
        return cls(buffers, launches, tuple(raw["outputs"]), cubins, tables)


def _buffer(row: dict[str, Any], tables: Tables | None) -> Buffer:
    buffer = Buffer(row["name"], int(row["nbytes"]), row["table"])
    there = tables.size_bytes if tables is not None else 0
    if buffer.table is not None and not 0 <= buffer.table <= buffer.table + buffer.nbytes <= there:
        raise ValueError(
            f"a table of {buffer.nbytes} bytes at {buffer.table} is outside of the {there} bytes "
            "of tables that came"
        )
    return buffer


def _launch(row: dict[str, Any], buffers: tuple[Buffer, ...], cubins: dict[str, bytes]) -> Launch:
    parameters: list[Parameter] = []
    for raw in row["parameters"]:
        fields = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items() if k != "kind"}
        parameter = _KINDS[raw["kind"]](**fields)
        if not isinstance(parameter, Literal):
            _check_address(parameter.buffer, parameter.offset, buffers)
        parameters.append(parameter)
    extents = {name: tuple(int(n) for n in row[name]) for name in ("grid", "block")}
    launch = Launch(**{**row, **extents, "parameters": tuple(parameters)})
    threads = math.prod(launch.block) if min(launch.block, default=0) > 0 else 0
    in_range = 1 <= threads <= MAX_THREADS and 1 <= launch.num_ctas <= 16
    whole = len(launch.grid) == len(launch.block) == 3
    if not in_range or not whole or launch.cubin not in cubins:
        raise ValueError(f"malformed launch of {launch.function!r}")
    return launch


def _check_address(buffer: int, offset: int, buffers: tuple[Buffer, ...]) -> None:
    if buffer == -1 and offset == 0:
        return
    if not (0 <= buffer < len(buffers) and 0 <= offset <= buffers[buffer].nbytes):
        raise ValueError(f"address outside its buffer: buffer {buffer}, offset {offset}")
