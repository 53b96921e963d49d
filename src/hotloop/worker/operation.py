"""One operation of torch as a dispatch mode sees it: its name, what it reads and overwrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

ACCUMULATING = frozenset({"index_put", "_index_put_impl", "put"})
_PLACE = {"index_put": 3, "_index_put_impl": 3, "put": 3}


def address_of(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage, by which it is known during a call."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):  # sparse: no storage of its own
        return id(tensor)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that ran."""

    name: str
    """Without the underscore of those in place; those that add up where others only move are
    another operation."""
    read: Sequence[torch.Tensor]
    sources: Sequence[torch.Tensor]
    """What the result depends on: a copy takes its target over."""
    is_partial: bool
    """Whether it took over a part of a storage, whose rest stays what it was."""
    writes: bool
    """Whether it writes into an argument."""

    @classmethod
    def of(cls, func: Any, args: Any, kwargs: Any, read: Sequence[torch.Tensor]) -> Operation:
        """Describe a call of an operator."""
        name = func.overloadpacket.__name__
        plain = name.rstrip("_") or name
        writes = bool(func._schema.is_mutable)
        if plain == "copy":
            return cls(plain, read, read[1:], bool(read) and _is_part(read[0]), writes)
        if plain in ACCUMULATING and _accumulates(plain, args, kwargs):
            plain += "_accumulate"
        elif plain == "scatter" and "reduce" in str(func._overloadname):
            plain += "_reduce"
        return cls(plain, read, read, False, writes)


def _accumulates(name: str, args: Any, kwargs: Any) -> bool:
    place = _PLACE[name]
    return bool(args[place] if len(args) > place else kwargs.get("accumulate", False))


def _is_part(tensor: torch.Tensor) -> bool:
    return tensor.numel() * tensor.element_size() < tensor.untyped_storage().nbytes()
