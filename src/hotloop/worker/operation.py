"""One operation of torch as a dispatch mode sees it: its name, what it reads and writes.

An operator that works on lists (`_foreach_*`) is as many operations as the lists have elements,
each under the name that it has for a single tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from hotloop.worker.census import ELEMENTWISE
from hotloop.worker.dispatched import Dispatched
from hotloop.worker.tensors_in import tensors_in

ACCUMULATING = frozenset({"index_put", "_index_put_impl", "put"})
_LISTS = "_foreach_"
SHAPED = frozenset(
    {
        "empty_like", "full_like", "new_empty", "new_empty_strided", "new_full", "new_ones",
        "new_zeros", "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like",
    }
)  # fmt: skip
"""Operations that take nothing but a shape and a type from their argument."""
FILLING = frozenset({"copy", "fill", "zero"})
"""Operations that write over their first argument, and read the others only."""


def address_of(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage, by which it is known during a call."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # sparse: no storage of its own
        return id(tensor)


def owner_of(tensor: torch.Tensor, shared: range, slots: Iterable[int]) -> int:
    """Return the address of what a tensor is a part of.

    That is its storage. All of the judge's tensors lie in one on a GPU, so that each of them counts
    for itself there.

    Args:
        tensor: any.
        shared: addresses of the judge's memory.
        slots: where in it the judge's tensors begin.
    """
    address = address_of(tensor)
    if address not in shared:
        return address
    return max((start for start in slots if start <= tensor.data_ptr()), default=address)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that ran."""

    name: str
    """Without the underscore of those in place; those that add up where others only move are
    another operation."""
    read: Sequence[torch.Tensor]
    sources: Sequence[torch.Tensor]
    """What the result depends on: a copy takes its target over."""
    made: Sequence[torch.Tensor]
    """Results, arguments that were written among them."""
    is_partial: bool
    """Whether it took over a part of a storage, whose rest stays what it was."""
    writes: bool
    """Whether it writes into an argument."""
    size: int
    """Real numbers that it touched, in the largest tensor or list of tensors."""

    def joins_parts(self, shared: range, slots: Iterable[int]) -> bool:
        """Whether it is one of elements, and reads several places of one tensor (`owner_of`)."""
        if self.name not in ELEMENTWISE:
            return False
        large = [t for t in self.read if t.layout is torch.strided and t.numel() > 1]
        places = {(owner_of(t, shared, slots), t.shape, t.storage_offset()) for t in large}
        return len(places) > len({(address, shape) for address, shape, _ in places})

    @classmethod
    def all_of(
        cls, operator: Dispatched, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any
    ) -> Iterator[Operation]:
        """Yield what a call of an operator was, with what it returned."""
        name = operator.name.rstrip("_") or operator.name
        given = dict(zip(operator.names, args, strict=False)) | dict(kwargs)
        if not name.startswith(_LISTS):
            yield cls._of(name, operator, given, out)
            return
        n = max((len(v) for v in given.values() if isinstance(v, (list, tuple))), default=0)
        for i in range(n):
            part = {k: _nth(v, i, n) for k, v in given.items()}
            yield cls._of(name.removeprefix(_LISTS), operator, part, _nth(out, i, n))

    @classmethod
    def _of(cls, name: str, operator: Dispatched, given: Mapping[str, Any], out: Any) -> Operation:
        read = list(tensors_in(list(given.values())))
        made = list(tensors_in(out))
        returned = {id(t) for t in made}
        written = tensors_in([v for k, v in given.items() if k in operator.written])
        made += [t for t in written if id(t) not in returned]
        sources, is_partial = read, False
        if name in FILLING:
            in_place = operator.is_mutable and not operator.overload.endswith("out")
            sources, is_partial = read[1:], in_place and bool(read) and _is_part(read[0])
        elif name in SHAPED:
            sources = []
        elif name in ACCUMULATING and given.get("accumulate"):
            name += "_accumulate"
        elif name == "scatter" and "reduce" in operator.overload:
            name += "_reduce"
        size = max((_size(v) for v in (*given.values(), *made)), default=0)
        return cls(name, read, sources, made, is_partial, operator.is_mutable, size)


def _nth(value: Any, i: int, n: int) -> Any:
    return value[i] if isinstance(value, (list, tuple)) and len(value) == n else value


def _size(value: Any) -> int:
    return sum(t.numel() * (1 + t.is_complex()) for t in tensors_in(value))


def _is_part(tensor: torch.Tensor) -> bool:
    return tensor.numel() * tensor.element_size() < tensor.untyped_storage().nbytes()
