"""Opposed scales: inputs times 2**17 and the weights that they are multiplied by times 2**-17.

Products keep their size and each of their bits, so that every rule of the gate holds behind a
sigmoid too, where far values say little. A kernel that takes its operands through float16 as they
are has infinity there for the inputs and nothing left of the weights. `lowered`, at the final tier,
is the other way round: a scale that only goes down loses the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker.census import LIBRARY_PRODUCTS

SCALE = 2.0**17
"""A power of two: 62 % of N(0, 1) times that are over float16's largest number."""
SCALES = {"opposed": SCALE, "lowered": 1 / SCALE}
"""What a profile multiplies inputs by; weights by one over that."""
ROOM = 8.0
"""A dtype that is scaled holds this many times `SCALE`; float16 does not."""


class FirstProducts(TorchDispatchMode):
    """Sees which inputs are multiplied by which parameters as they are, views of them included."""

    def __init__(self, values: Sequence[Any], state: Mapping[str, Tensor]) -> None:
        """Follow the arguments of forward and parameters by name."""
        super().__init__()
        self.inputs: set[int] = set()
        """Places of such inputs among the arguments."""
        self.weights: set[str] = set()
        self._places = {
            _storage(v): i for i, v in enumerate(values) if isinstance(v, Tensor) and _is_wide(v)
        }
        self._names = {_storage(t): n for n, t in state.items() if t.dim() >= 2 and _is_wide(t)}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the operands of a product and run it unchanged."""
        if func.overloadpacket.__name__ in LIBRARY_PRODUCTS:
            found = [_storage(a) for a in args if isinstance(a, Tensor)]
            places = {self._places[s] for s in found if s in self._places}
            names = {self._names[s] for s in found if s in self._names}
            if places and names:
                self.inputs |= places
                self.weights |= names
        return func(*args, **(kwargs or {}))


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _is_wide(tensor: Tensor) -> bool:
    dtype = tensor.dtype
    return dtype.is_floating_point and torch.finfo(dtype).max > ROOM * SCALE
