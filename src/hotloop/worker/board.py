"""The board: where the inputs, outputs and state of one workload lie in the arena.

The judge writes draws into it and reads outputs from it; a candidate sees the same memory. Several
sets of inputs and outputs lie side by side, alike, so that calls can be told apart by address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from hotloop.worker.arena import Arena, Layout, Offset, Slot
from hotloop.worker.arguments import encode_args
from hotloop.worker.poison import fill, hide
from hotloop.worker.reference import Draw, Reference

MAX_SETS = 16
SETS_BYTES = 1 << 30
"""More than two sets only while they fit in this: short kernels need many distinct buffers."""


@dataclass(slots=True)
class Board:
    """The arena of one problem: where inputs, outputs and state lie."""

    arena: Arena
    layout: Layout
    state: dict[str, Slot]
    sets: list[tuple[list[Any], list[Slot]]]
    """Per set: inputs (a Slot, or a plain value) and outputs."""
    reserve_bytes: int
    precision: str = "as_shipped"
    """The problem's policy: a candidate's library calls on this board begin with its flags."""
    _written: set[int] = field(default_factory=set)

    @classmethod
    def build(
        cls,
        reference: Reference,
        draw: Draw,
        outputs: Sequence[torch.Tensor],
        *,
        offset: Offset = Offset.NONE,
    ) -> Board:
        """Lay out and allocate the arena for a draw and its outputs.

        Inputs begin `offset` past aligned addresses; parameters and outputs are aligned.

        Raises:
            MemoryError: it does not fit on the device.
        """
        layout = Layout()
        state = {name: layout.place_like(t) for name, t in draw.state.items()}
        before = layout.size_bytes
        sets = [place_set(layout, draw, outputs, offset=offset)]
        set_bytes = layout.size_bytes - before
        for _ in range(max(1, min(MAX_SETS, SETS_BYTES // max(set_bytes, 1)) - 1)):
            sets.append(place_set(layout, draw, outputs, offset=offset))
        device = reference.loaded.device
        reserve = 0 if device == "cpu" else min(4 * set_bytes, 8 << 30)
        arena = Arena.create(device, layout.size_bytes)
        arena.fill_gaps(layout)
        return cls(arena, layout, state, sets, reserve, reference.precision.name)

    def write_state(self, draw: Draw) -> None:
        """Copy a draw's parameters and buffers into the arena."""
        for name, slot in self.state.items():
            self.arena.view(slot).copy_(draw.state[name])

    def write_inputs(self, index: int, draw: Draw) -> None:
        """Copy a draw's inputs into set `index` and poison that set's outputs."""
        inputs, outputs = self.sets[index]
        self._written.add(index)
        for slot, value in zip(inputs, draw.inputs, strict=True):
            if isinstance(slot, Slot):
                self.arena.view(slot).copy_(value)
        for slot in outputs:
            fill(self.arena.view(slot))

    def hide_inputs(self) -> None:
        """Poison all inputs that were written: work ahead of a call must not see any."""
        for index in sorted(self._written):
            for slot in self.sets[index][0]:
                if isinstance(slot, Slot):
                    hide(self.arena.view(slot))
        self._written.clear()

    def inputs_unchanged(self, index: int, draw: Draw) -> bool:
        """Whether set `index` still holds the draw's inputs, bit for bit."""
        inputs, _ = self.sets[index]
        return all(
            _same_bits(self.arena.view(slot), value)
            for slot, value in zip(inputs, draw.inputs, strict=True)
            if isinstance(slot, Slot)
        )

    def state_unchanged(self, draw: Draw) -> bool:
        """Whether the parameters still are the draw's, bit for bit."""
        return all(_same_bits(self.arena.view(s), draw.state[n]) for n, s in self.state.items())

    def outputs(self, index: int) -> list[torch.Tensor]:
        """Return the output buffers of set `index`; they share the arena's memory."""
        return [self.arena.view(slot) for slot in self.sets[index][1]]


def place_set(
    layout: Layout,
    draw: Draw,
    outputs: Sequence[torch.Tensor],
    *,
    offset: Offset = Offset.NONE,
) -> tuple[list[Any], list[Slot]]:
    """Reserve room for one call's inputs, `offset` past aligned addresses, and outputs."""
    inputs = [
        layout.place_like(v, offset=offset) if isinstance(v, torch.Tensor) else v
        for v in draw.inputs
    ]
    places = [layout.place(t.shape, t.contiguous().stride(), t.dtype) for t in outputs]
    return inputs, places


def describe_set(inputs: list[Any], outputs: list[Slot]) -> dict[str, Any]:
    """Return where one call's inputs and outputs lie, as JSON values."""
    return {
        "inputs": [
            {"slot": v.to_json()} if isinstance(v, Slot) else {"value": encode_args(v)}
            for v in inputs
        ],
        "outputs": [s.to_json() for s in outputs],
    }


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype.is_floating_point:
        width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
        a, b = a.contiguous().view(width), b.contiguous().view(width)
    return torch.equal(a, b)
