"""Census: which operations a reference executes, seen below autograd and composite functions.

It decides what may be asked of a reference: exact integer values only where every operation is a
product or moves data; a second convolution member only where there are convolutions; no foreign
values where an operation would assert on the device (which kills the process's CUDA context).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "mv", "dot", "convolution", "linear"})
CONVOLUTIONS = frozenset({"convolution", "_convolution", "cudnn_convolution"})
MOVES = frozenset(
    {
        "view",
        "_unsafe_view",
        "reshape",
        "t",
        "transpose",
        "permute",
        "expand",
        "unsqueeze",
        "squeeze",
        "clone",
        "contiguous",
        "slice",
        "select",
        "cat",
        "stack",
        "split",
        "as_strided",
        "alias",
        "detach",
        "_reshape_alias",
        "triu",
        "tril",
        "unbind",
    }
)
ASSERTING = frozenset({"binary_cross_entropy", "multinomial", "bernoulli"})
"""Operations that check their arguments' range with a device-side assertion."""


class Census(TorchDispatchMode):
    """Collects the names of the ATen operations that run under it."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.seeded = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record `func` and run it unchanged."""
        self.names.add(func.overloadpacket.__name__)
        self.seeded |= torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))

    @property
    def multilinear(self) -> bool:
        """Whether there are only products and data movement, and at least one product."""
        return bool(self.names & PRODUCTS) and self.names <= PRODUCTS | MOVES

    @property
    def convolves(self) -> bool:
        """Whether a convolution ran."""
        return bool(self.names & CONVOLUTIONS)

    @property
    def asserts(self) -> tuple[str, ...]:
        """Operations with a range check on the device."""
        return tuple(sorted(self.names & ASSERTING))
