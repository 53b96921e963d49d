"""Movements: whether torch put an output's values where they are, for references that only move.

Elsewhere a copy before or after a kernel is preparation; there it is the work. Values are held
against outputs at their places: a tensor that torch moved into new memory and that kernels, at
most, copied as it lies. A view is no movement: a kernel that reads by strides does the work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import torch

from hotloop.worker.fingerprint import Fingerprint
from hotloop.worker.operation import Operation, address_of

KEPT = 64
"""Moved tensors of an output's size that are kept for each operation, the last; 4 kB each."""


class Movements:
    """Notes which tensors hold what torch alone moved."""

    def __init__(self, wanted: Sequence[tuple[int, torch.dtype]]) -> None:
        """Look for outputs of these numbers of elements and dtypes."""
        self._numels = {numel for numel, _ in wanted}
        self._worked: set[int] = set()  # storages whose order is a kernel's, or whose values are
        self._moved: dict[int, str] = {}  # storages that torch moved values into, and how
        self._kept: dict[str, deque[tuple[int, Fingerprint]]] = {}

    def note(
        self, done: Operation, new: set[int], made: Sequence[torch.Tensor], *, is_work: bool
    ) -> None:
        """Note an operation that made tensors, of which `new` are the addresses in new memory."""
        worked = any(address_of(t) in self._worked for t in done.sources)
        for tensor in made:
            address = address_of(tensor)
            if worked:
                self._worked.add(address)
                self._moved.pop(address, None)
                continue
            moved = not is_work and bool(done.sources) and "empty" not in done.name
            moved &= address in new or done.writes
            if address in new or (done.writes and not done.is_partial):
                self._worked.discard(address)
                self._moved.pop(address, None)
            if moved:
                self._moved[address] = done.name
                self._keep(done.name, tensor)

    def give(self, tensors: Sequence[torch.Tensor]) -> None:
        """Note what a kernel is given."""
        for tensor in tensors:
            name = self._moved.get(address_of(tensor))
            if name is not None:
                self._keep(name, tensor)

    def take(
        self, written: torch.Tensor, arguments: Sequence[torch.Tensor], *, is_copied: bool
    ) -> None:
        """Note what a kernel wrote, and whether it is a copy of an argument in any order."""
        address = address_of(written)
        self._moved.pop(address, None)
        same = is_copied and any(
            address_of(t) != address
            and address_of(t) not in self._worked
            and _lies_alike(t, written)
            for t in arguments
        )
        (self._worked.discard if same else self._worked.add)(address)

    def answers(self, outputs: Sequence[torch.Tensor]) -> list[tuple[str, int]]:
        """Return (operation, output) for each output whose values torch moved to their places."""
        found = []
        for i, output in enumerate(outputs):
            wanted = Fingerprint.of(output)
            for name, kept in self._kept.items():
                if any(numel == output.numel() and _is_same(f, wanted) for numel, f in kept):
                    found.append((name, i))
        return found

    def _keep(self, name: str, tensor: torch.Tensor) -> None:
        if tensor.numel() in self._numels:
            kept = self._kept.setdefault(name, deque(maxlen=KEPT))
            kept.append((tensor.numel(), Fingerprint.of(tensor)))


def _is_same(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether sampled values are the same at the same places."""
    return one.is_like(other) and one.samples == other.samples


def _lies_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.numel() != other.numel():
        return False
    return _is_same(*(Fingerprint.of(_in_memory_order(t)) for t in (one, other)))


def _in_memory_order(tensor: torch.Tensor) -> torch.Tensor:
    order = sorted(range(tensor.dim()), key=lambda d: -tensor.stride(d))
    return tensor.permute(order).reshape(-1)
