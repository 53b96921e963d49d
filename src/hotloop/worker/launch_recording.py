"""A launch plan as a recording: what the judge's launcher needs to run a `.cu` candidate.

The same form that a Triton forward is recorded in, so there is one launcher for both. Buffer 0 is
the judge's arena; then come the plan's outputs and its scratch, in order, without names: whoever
launches the recording allocates them.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from hotloop.worker.arena import torch_dtype
from hotloop.worker.expression import Number
from hotloop.worker.launch_plan import BoundLaunch, BoundPlan
from hotloop.worker.recording import Buffer, Launch, Literal, Parameter, Pointer, Recording

ARENA = "arena"
_PACKING = {
    "int32": "<i",
    "uint32": "<I",
    "int64": "<q",
    "uint64": "<Q",
    "float32": "<f",
    "float64": "<d",
}


@dataclass(frozen=True, slots=True)
class ArenaPlaces:
    """Where a plan's inputs and state lie in the arena."""

    arena_bytes: int
    offsets: Mapping[str, int]
    """Bytes from the arena's start, by the description's names."""


def record_plan(plan: BoundPlan, cubin: bytes, places: ArenaPlaces) -> Recording:
    """Return the launches of a plan on one set of the arena.

    Raises:
        KeyError: a launch has a buffer that is neither in the plan nor in the arena.
    """
    digest = hashlib.sha256(cubin).hexdigest()
    made = {**plan.outputs, **plan.scratch}
    buffers = [Buffer(ARENA, places.arena_bytes)]
    addresses = {name: Pointer(0, offset) for name, offset in places.offsets.items()}
    for name, (shape, dtype) in made.items():
        addresses[name] = Pointer(len(buffers), 0)
        buffers.append(Buffer(None, math.prod(shape) * torch_dtype(dtype).itemsize))
    outputs = tuple(
        {
            "buffer": addresses[name].buffer,
            "offset": 0,
            "shape": list(shape),
            "stride": contiguous_strides(shape),
            "dtype": dtype,
        }
        for name, (shape, dtype) in plan.outputs.items()
    )
    launches = tuple(_launch(launch, digest, addresses) for launch in plan.launches)
    return Recording(tuple(buffers), launches, outputs, {digest: cubin})


def contiguous_strides(shape: tuple[int, ...]) -> list[int]:
    """Return the strides, in elements, of a contiguous tensor."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _launch(launch: BoundLaunch, digest: str, addresses: Mapping[str, Pointer]) -> Launch:
    return Launch(
        cubin=digest,
        function=launch.name,
        grid=launch.grid,
        block=launch.block,
        num_ctas=1,
        shared_bytes=launch.shared_bytes,
        cooperative=False,
        programmatic=False,
        parameters=tuple(_parameter(kind, value, addresses) for kind, value in launch.args),
    )


def _parameter(kind: str, value: str | Number, addresses: Mapping[str, Pointer]) -> Parameter:
    if kind == "buffer":
        return addresses[str(value)]
    return Literal(struct.pack(_PACKING[kind], value).hex())
