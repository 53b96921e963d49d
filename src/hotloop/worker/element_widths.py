"""Element widths: arithmetic that takes several elements of a tensor for one, of a wider type.

Two neighbours of 4 bytes are a complex number of 8, and its product with 1 - i holds their sum; two
integers are one of twice the width. So arithmetic of elements is a reduction where what it reads
was written in narrower elements than it is read in, also where it was moved meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from hotloop.worker.census import ELEMENTWISE, REARRANGING
from hotloop.worker.operation import Operation, address_of, owner_of

_JOINING = ELEMENTWISE - REARRANGING - {"index_fill", "masked_fill", "where"}
"""Arithmetic that mixes the bytes of an element; choices leave each as it is."""


class ElementWidths:
    """Knows the width of the elements that each storage of a call was written in."""

    def __init__(self, shared: range) -> None:
        """Take tensors in the judge's memory, `shared`, as the judge made them."""
        self._shared = shared
        self._widths: dict[int, int] = {}  # bytes of an element, by storage; the least of several

    def note(self, done: Operation, new: set[int], slots: Mapping[int, torch.Tensor]) -> bool:
        """Note an operation; return whether it joins elements.

        Args:
            done: the operation.
            new: addresses of the storages that it made.
            slots: the judge's tensors by their addresses.
        """
        large = [t for t in done.sources if t.layout is torch.strided and t.numel() > 1]
        widths = [(self._width(t, slots), t.element_size()) for t in large]
        narrow = [written for written, read in widths if written < read]
        joins = bool(narrow) and done.name in _JOINING
        for tensor in done.made:
            address = address_of(tensor)
            width = min([tensor.element_size(), *(() if joins else narrow)])
            if address in new:
                self._widths.pop(address, None)
            # Memory that holds nothing, or one value, may be cut in any way; a view writes nothing.
            if done.sources and (address in new or done.writes):
                self._narrow(address, width)
        return joins

    def write(self, tensor: torch.Tensor) -> None:
        """Note that a kernel wrote a tensor."""
        self._narrow(address_of(tensor), tensor.element_size())

    def _narrow(self, address: int, width: int) -> None:
        self._widths[address] = min(width, self._widths.get(address, width))

    def _width(self, tensor: torch.Tensor, slots: Mapping[int, torch.Tensor]) -> int:
        if address_of(tensor) in self._shared:
            owner = owner_of(tensor, self._shared, slots)
            return slots.get(owner, tensor).element_size()
        return self._widths.get(address_of(tensor), tensor.element_size())
