"""Reductions of a call: how far its extrema go, what it ranks, whether it leaves only columns.

Whether values show what an extremum begins at depends on what it is taken over: a part of the
inputs that is all negative shows nothing where the maximum is one of everything. So it is looked at
where the extrema are taken, below autograd. So are ranks: scores that saturate become equal, and
which of equals comes first is nobody's error.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

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

    def __init__(self) -> None:
        super().__init__()
        self.goes_below = False
        """Whether some maximum was finite and below -`LARGEST`."""
        self.goes_above = False
        """Whether some minimum was finite and above `LARGEST`."""
        self.leaves_columns = False
        """Whether a sum or norm took in all rows that might differ, and kept columns apart."""
        self.tied = 0.0
        """The largest share of ranked values that equal one of their row, 0..1."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note what a reduction is of and run it."""
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        is_extremum = name in MAXIMA or name in MINIMA
        if (is_extremum or name in SUMS) and args and isinstance(args[0], Tensor):
            given = _arguments(func, args, kwargs or {})
            if "other" not in given and args[0].is_floating_point() and args[0].numel():
                self._note(name, given, args[0], out)
        return out

    def _note(self, name: str, given: dict[str, Any], of: Tensor, out: Any) -> None:
        if "pool" in name:
            top = out[0] if isinstance(out, tuple) else out
            self.goes_below |= _is_between(-top)
            return
        if name in RANKS:
            self.tied = max(self.tied, _tied(of, given.get("dim", -1)))
        dims = _dimensions(given, of)
        if name in MAXIMA:
            self.goes_below |= _is_between(-of.amax(dims))
        if name in MINIMA:
            self.goes_above |= _is_between(of.amin(dims))
        if name in SUMS and of.dim() > 1 and of.dim() - 1 not in dims:
            self.leaves_columns |= cut(of) in (None, *dims)


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


def _is_between(values: Tensor) -> bool:
    """Whether some value is over `LARGEST` and finite."""
    return bool(((values > LARGEST) & (values < torch.inf)).any())
