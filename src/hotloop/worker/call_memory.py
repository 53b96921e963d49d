"""Call memory: which storages a call made itself, and which older ones it wrote.

An output in older memory that the call wrote is a buffer that a later call writes again, be it the
next one or one of a ring. A constant that is only returned, an input and a parameter are not
written; memory that is not torch's own (`numpy`) is left alone, as is what `set_` brings in.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hotloop.worker.operation import Operation, address_of


class CallMemory:
    """Notes where the results of one call lie."""

    def __init__(self, shared: range) -> None:
        """Leave out the judge's memory, `shared`, which holds inputs and parameters."""
        self._shared = shared
        self._made: set[int] = set()
        self._written: set[int] = set()

    def note(self, done: Operation, new: set[int], addresses: Sequence[int]) -> None:
        """Note an operation whose results lie at `addresses`, `new` of them where none lay."""
        if done.name != "set":
            self._made |= new
        if done.writes:
            self._written.update(addresses)

    def write(self, address: int) -> None:
        """Note that a kernel changed a storage."""
        self._written.add(address)

    def kept(self, outputs: Sequence[torch.Tensor]) -> list[int]:
        """Return which outputs lie in older memory that this call wrote."""
        return [i for i, output in enumerate(outputs) if self._is_kept(output)]

    def _is_kept(self, output: torch.Tensor) -> bool:
        address = address_of(output)
        if address in self._shared or address in self._made or address not in self._written:
            return False
        return output.untyped_storage().resizable()
