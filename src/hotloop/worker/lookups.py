"""Lookups: which parameters are tables that a model's inputs are indices into.

Of a model whose inputs are all indices (tokens) no value is free; what it computes with are the
rows of its tables. So these get the values that inputs have elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker.value_profiles import Reach, fill

LOOKUPS = frozenset({"embedding", "embedding_bag", "_embedding_bag", "_embedding_bag_forward_only"})
RENORMS = "embedding_renorm_"
"""Writes into the table: its rows have a largest norm, and values beyond it are never used."""


class Lookups(TorchDispatchMode):
    """Sees which parameters are looked up, views of them included."""

    def __init__(self, values: Sequence[Any], state: Mapping[str, Tensor]) -> None:
        """Follow parameters by name, where no argument of forward is a floating-point tensor."""
        super().__init__()
        self.tables: set[str] = set()
        given = [v for v in values if isinstance(v, Tensor)]
        self._names = {
            t.untyped_storage().data_ptr(): n
            for n, t in state.items()
            if t.dim() == 2 and t.dtype.is_floating_point
        }
        if not given or any(v.dtype.is_floating_point or v.dtype.is_complex for v in given):
            self._names = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the table of a lookup and run it unchanged."""
        name = func.overloadpacket.__name__
        if name in LOOKUPS:
            found = self._names.get(args[0].untyped_storage().data_ptr())
            self.tables |= {found} if found is not None else set()
        if name == RENORMS:
            self._names, self.tables = {}, set()
        return func(*args, **(kwargs or {}))


def fill_table(table: Tensor, profile: str, gen: torch.Generator, reach: Reach) -> None:
    """Overwrite a table with values of a profile; rows of 0, as those of a padding, stay so."""
    is_padding = (table == 0).all(1, keepdim=True)
    fill(table, profile, gen, reach)
    table.masked_fill_(is_padding, 0)
