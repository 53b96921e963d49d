"""Reductions of a call: how far its extrema go, what it ranks, whether it leaves only columns.

Whether values show what an extremum begins at depends on what it is taken over: a part of the
inputs that is all negative shows nothing where the maximum is one of everything. So it is looked at
where the extrema are taken, below autograd. So are ranks: scores that saturate become equal, and
which of equals comes first is nobody's error. That counts where the order is returned or used: of
values in order equal ones may change places. Of an argument's order `ties.py` is the judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hotloop.worker.apart import cut
from hotloop.worker.census import Census
from hotloop.worker.draw import Draw, Reference
from hotloop.worker.parameters import DOWN, ORDERS, RANKS, UP

LARGEST = 65504.0
"""Float16's largest number, the farthest that is taken for infinity."""
MINIMA = UP | {"argmin"}
MAXIMA = DOWN | ORDERS
SUMS = frozenset(
    {"linalg_vector_norm", "mean", "norm", "std", "std_mean", "sum", "var", "var_mean"}
)


class Reductions(TorchDispatchMode):
    """Sees the reductions of one call and runs them unchanged."""

    def __init__(self, given: Sequence[object] = ()) -> None:
        """Look at a call on the arguments `given`."""
        super().__init__()
        self._given = [value for value in given if isinstance(value, Tensor)]
        self._orders: list[_Order] = []
        self.goes_below = False
        """Whether some maximum was finite and below -`LARGEST`."""
        self.goes_above = False
        """Whether some minimum was finite and above `LARGEST`."""
        self.leaves_columns = False
        """Whether a sum or norm took in all rows that might differ, and kept columns apart."""
        self.tied = 0.0
        """The largest share of equal ones among values whose order is returned or used, 0..1."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note what a reduction is of and run it."""
        if self._orders:
            used = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
            self._count(order for order in self._orders if order.is_among(used))
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        is_extremum = name in MAXIMA or name in MINIMA
        if (is_extremum or name in SUMS) and args and isinstance(args[0], Tensor):
            given = _arguments(func, args, kwargs or {})
            if "other" not in given and args[0].is_floating_point() and args[0].numel():
                self._note(name, given, args[0], out)
        return out

    def returned(self, outputs: Sequence[Tensor]) -> None:
        """Take in what the call returned."""
        self._count(o for o in self._orders if not o.is_of_argument and o.is_among(outputs))

    def _count(self, orders: Iterable[_Order]) -> None:
        self.tied = max(self.tied, *(order.tied for order in orders), 0.0)

    def _note(self, name: str, given: dict[str, Any], of: Tensor, out: Any) -> None:
        if "pool" in name:
            top = out[0] if isinstance(out, tuple) else out
            self.goes_below |= _is_between(-top)
            return
        if name in RANKS:
            tied = _tied(of, given.get("dim", -1))
            self._orders.append(_Order(out[1], tied, any(_is_same(of, x) for x in self._given)))
        dims = _dimensions(given, of)
        if name in MAXIMA:
            self.goes_below |= _is_between(-of.amax(dims))
        if name in MINIMA:
            self.goes_above |= _is_between(of.amin(dims))
        if name in SUMS and of.dim() > 1 and of.dim() - 1 not in dims:
            self.leaves_columns |= cut(of) in (None, *dims)


@dataclass(frozen=True, slots=True)
class _Order:
    """What one operation ranked."""

    indices: Tensor
    tied: float
    is_of_argument: bool

    def is_among(self, tensors: Iterable[Tensor]) -> bool:
        own = self.indices.untyped_storage().data_ptr()
        return any(
            t.dtype is torch.int64 and t.untyped_storage().data_ptr() == own for t in tensors
        )


def reductions(reference: Reference, draw: Draw) -> Reductions:
    """Return what is reduced where the reference runs on a draw.

    Raises:
        ProblemError: it does not run.
    """
    seen = Reductions()
    with seen:
        reference.eager(draw)
    return seen


def has_minimum(census: Census) -> bool:
    """Whether there is an operation with a minimum."""
    return bool(census.names & MINIMA)


def _arguments(func: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of an operation by name, with its defaults."""
    given = {a.name: a.default_value for a in func._schema.arguments if a.has_default_value()}
    given.update(zip((a.name for a in func._schema.arguments), args, strict=False))
    return given | kwargs


def _dimensions(given: dict[str, Any], of: Tensor) -> tuple[int, ...]:
    """Return the dimensions that are reduced, from 0; all of them where none is told."""
    dim = given.get("dim")
    told = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(d % max(of.dim(), 1) for d in told) or tuple(range(of.dim()))


def _tied(of: Tensor, dim: int) -> float:
    """Return the share of values that equal the next of their row in order."""
    if of.dim() == 0 or of.shape[dim] < 2:
        return 0.0
    return float(of.sort(dim).values.diff(dim=dim).eq(0).double().mean())


def _is_same(a: Tensor, b: Tensor) -> bool:
    return (a.data_ptr(), a.shape, a.stride()) == (b.data_ptr(), b.shape, b.stride())


def _is_between(values: Tensor) -> bool:
    """Whether some value is over `LARGEST` and finite."""
    return bool(((values > LARGEST) & (values < torch.inf)).any())
