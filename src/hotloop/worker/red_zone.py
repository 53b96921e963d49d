"""A buffer that a kernel writes, between two red zones that it must not touch.

The zones hold a byte pattern; a store that misses the buffer by up to `ZONE_BYTES` changes it. The
buffer itself is filled with NaN before each call, so that what a kernel did not write is no answer.

Not covered: a store further off (the device faults, or the judge's own red zones see it), a store
of the pattern itself, and reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from hotloop.worker import poison
from hotloop.worker.arena import torch_dtype
from hotloop.worker.faults import OutOfBoundsError

ZONE_BYTES = 64 << 10
"""One block of 1024 threads, each storing 16 bytes four times, stays within it."""
PATTERN = 0xA5


class GuardedBuffer:
    """Device memory of one output or scratch buffer, with a red zone on each side."""

    def __init__(self, name: str, shape: Sequence[int], dtype: str, *, device: str) -> None:
        """Allocate it; contiguous.

        Args:
            name: what messages call it.
            shape: extents.
            dtype: name of a torch dtype.
            device: `cuda` or `cpu`.
        """
        self.name = name
        self.n_bytes = math.prod(shape) * torch_dtype(dtype).itemsize
        size = self.n_bytes + 2 * ZONE_BYTES
        self._memory = torch.full((size,), PATTERN, dtype=torch.uint8, device=device)
        inside = self._memory[ZONE_BYTES : ZONE_BYTES + self.n_bytes]
        self.tensor = inside.view(torch_dtype(dtype)).view(tuple(shape))
        self._before = self._memory[:ZONE_BYTES]
        self._after = self._memory[ZONE_BYTES + self.n_bytes :]

    @property
    def address(self) -> int:
        """Address of the first byte inside."""
        return self._memory.data_ptr() + ZONE_BYTES

    def poison(self) -> None:
        """Fill the inside with NaN, or an unlikely value of an integer type."""
        poison.fill(self.tensor)

    def intact(self) -> torch.Tensor:
        """Return whether nobody wrote into the zones, as a tensor of one bool."""
        return (self._before == PATTERN).all() & (self._after == PATTERN).all()

    def describe_damage(self) -> str:
        """Return where the zones were written, as one line."""
        before, after = (torch.nonzero(z != PATTERN).flatten() for z in (self._before, self._after))
        element_bytes = self.tensor.element_size()
        places = []
        if after.numel():
            first = self.n_bytes + int(after[0])
            places.append(
                f"{after.numel()} bytes after its end, the first at byte {first} "
                f"(element {first // element_bytes})"
            )
        if before.numel():
            nearest = int(before[-1]) - ZONE_BYTES
            places.append(
                f"{before.numel()} bytes before its start, the nearest at byte {nearest} "
                f"(element {nearest // element_bytes})"
            )
        shape = " x ".join(str(n) for n in self.tensor.shape) or "scalar"
        return (
            f"a kernel wrote outside {self.name!r} ({shape}, {self.tensor.numel()} elements): "
            f"{'; '.join(places)}; guard the index"
        )


def check_zones(buffers: Sequence[GuardedBuffer]) -> None:
    """Look at all zones with one wait for the device.

    Raises:
        OutOfBoundsError: a zone was written; names the first buffer.
    """
    if not buffers:
        return
    intact = torch.stack([buffer.intact() for buffer in buffers]).tolist()
    for buffer, whole in zip(buffers, intact, strict=True):
        if not whole:
            raise OutOfBoundsError(buffer.describe_damage())
