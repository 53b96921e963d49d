"""Call values: which results of torch's operations hold values of the call's own tensors.

Masks, tables and biases out of indices have none, however large they are, and torch may make them.
Values of the call are those of its inputs and parameters, other than small ones (a slope a head, a
bias a column), and what kernels wrote: one that copies would let all values go unseen otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import torch

from hotloop.worker.operation import Operation, address_of, owner_of


class CallValues:
    """Follows the values of one call through torch's operations."""

    def __init__(self, shared: range, least: int) -> None:
        """Follow tensors in the judge's memory, `shared`, of `least` elements or more."""
        self.applied = 0
        """Elements of all those values that operations took, wherever they came from."""
        self._shared = shared
        self._least = least
        self._held: set[int] = set()  # storages with such values
        self._taken: set[int] = set()  # the judge's tensors that were counted
        self._left: dict[int, int] = {}  # elements that kernels wrote and nobody took, by storage

    def note(self, done: Operation, slots: Mapping[int, torch.Tensor]) -> bool:
        """Note an operation; return whether it took values of the call.

        Args:
            done: the operation.
            slots: the judge's tensors by their addresses.
        """
        found = any([self._holds(t, slots) for t in done.sources])  # each is counted
        for address in map(address_of, done.made):
            if found:
                self._held.add(address)
            elif not done.is_partial:
                self._held.discard(address)
        return found

    def write(self, tensor: torch.Tensor) -> None:
        """Note that a kernel wrote a tensor."""
        address, n = address_of(tensor), tensor.numel()
        if address in self._shared:
            return
        self._held.add(address)
        with suppress(RuntimeError, NotImplementedError):  # sparse: no storage of its own
            room = tensor.untyped_storage().nbytes() // tensor.element_size()
            n = min(n + self._left.get(address, 0), room)
        self._left[address] = n

    def _holds(self, tensor: torch.Tensor, slots: Mapping[int, torch.Tensor]) -> bool:
        address = address_of(tensor)
        if address not in self._shared:
            self.applied += self._left.pop(address, 0)
            return address in self._held
        owner = owner_of(tensor, self._shared, slots)
        given = slots.get(owner, tensor)
        if not (given.is_floating_point() or given.is_complex()) or given.numel() < self._least:
            return False
        self.applied += 0 if owner in self._taken else given.numel()
        self._taken.add(owner)
        return True
