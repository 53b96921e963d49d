"""Call memory: which storages a call made itself, and which older ones it wrote.

An output in older memory that the call wrote is a buffer that a later call writes again, be it the
next one or one of a ring. A constant that is only returned, an input and a parameter are not
written. Of memory that is not torch's own (`numpy`), or says so (a capsule of a tensor), nobody
tells when it was made: there, a storage counts that an earlier call returned and that still lives.
What `set_` brings in is such memory, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from hotloop.worker.operation import Operation, address_of

_returned: dict[int, StorageWeakRef] = {}
"""Storages that are not torch's own and held outputs of earlier calls, by address."""
_owned: dict[int, StorageWeakRef] = {}
"""Storages that torch made under watch, by address: what lies in a living one is torch's."""


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
        for tensor in (t for t in done.made if t.layout is torch.strided):
            if address_of(tensor) in new and tensor.untyped_storage().resizable():
                _owned[address_of(tensor)] = StorageWeakRef(tensor.untyped_storage())
        if done.writes:
            self._written.update(addresses)

    def write(self, address: int) -> None:
        """Note that a kernel changed a storage."""
        self._written.add(address)

    def kept(self, outputs: Sequence[torch.Tensor]) -> list[int]:
        """Return which outputs lie in older memory that this call wrote."""
        found = [i for i, output in enumerate(outputs) if self._is_kept(output)]
        for output in outputs:
            if not output.untyped_storage().resizable():
                _returned[address_of(output)] = StorageWeakRef(output.untyped_storage())
        return found

    def _is_kept(self, output: torch.Tensor) -> bool:
        address = address_of(output)
        if address in self._shared or address in self._made or address not in self._written:
            return False
        storage = output.untyped_storage()
        # Of an earlier call's, which was let go of before this one began.
        earlier = _returned.get(address)
        return storage.resizable() or (earlier is not None and not earlier.expired())


def is_foreign(tensor: torch.Tensor, shared: range) -> bool:
    """Whether a tensor lies in memory of the host that is neither torch's own nor the judge's.

    An array of `numpy`, bytes, a file: what is written there is read without torch.

    Args:
        tensor: any.
        shared: addresses of the judge's memory.
    """
    is_plain = tensor.device.type == "cpu" and tensor.layout is torch.strided
    if not is_plain or address_of(tensor) in shared:
        return False
    owner = _owned.get(address_of(tensor))
    is_torchs = owner is not None and not owner.expired()  # and came back by a capsule
    return not is_torchs and not tensor.untyped_storage().resizable()
