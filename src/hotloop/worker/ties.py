"""Ties: which of several equal elements an index names is left open.

Where an output is the index of an extremum of an input (argmax, argmin, the indices of max, min,
top-k and sorting), a candidate may name another element that holds exactly the same value. Then the
values at its indices are compared instead of the indices: exact ties pass, anything else is refused
as before. A stable sort promises which comes first, so it stays exact. So does an index into
something that forward has computed first: whether two of its values are equal is a question of
rounding.

Which outputs those are is found by running the reference once under a mode that follows arguments.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker.reference import Draw, Outputs, Reference

aten = torch.ops.aten
ONE_INDEX = {
    aten.argmax.default,
    aten.argmin.default,
    aten.max.dim,
    aten.min.dim,
}
MANY_INDICES = {aten.topk.default, aten.sort.default, aten.sort.stable}
"""Each index may occur once in a row."""


@dataclass(frozen=True, slots=True)
class TieLaw:
    """An output that holds indices into an input."""

    argument: int
    """Position of the input among forward's arguments."""
    dim: int | None
    """None: into the flattened input."""
    keepdim: bool
    distinct: bool

    def agrees(self, candidate: Tensor, golden: Tensor, source: Tensor) -> bool:
        """Whether both name equal values of `source`; candidate and golden are int64, alike."""
        if self.dim is None:
            source, dim = source.reshape(-1), 0
            candidate, golden = candidate.reshape(-1), golden.reshape(-1)
        else:
            dim = self.dim % max(source.dim(), 1)
            if not (self.keepdim or self.distinct):
                candidate, golden = candidate.unsqueeze(dim), golden.unsqueeze(dim)
        size = source.shape[dim] if source.dim() else 1
        if bool(((candidate < 0) | (candidate >= size)).any()):
            return False
        if self.distinct:
            ordered = candidate.sort(dim=dim).values
            if bool((ordered.diff(dim=dim) == 0).any()):
                return False
        named, right = source.gather(dim, candidate), source.gather(dim, golden)
        return bool(((named == right) | ((named != named) & (right != right))).all())


class _Follow(TorchDispatchMode):
    """Notes the results of index operations on tensors that are forward's own arguments."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        super().__init__()
        self._arguments = arguments
        self.found: list[tuple[Tensor, TieLaw]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in ONE_INDEX or func in MANY_INDICES:
            position = self._position(args[0])
            if position is not None:
                options = dict(kwargs or {})
                names = [a.name for a in func._schema.arguments]
                options |= dict(zip(names[1:], args[1:], strict=False))
                index = result if isinstance(result, Tensor) else result[1]
                if not options.get("stable"):  # a stable order names equal elements in turn
                    self.found.append((index, _law(func, position, options)))
        return result

    def _position(self, tensor: Tensor) -> int | None:
        for i, argument in enumerate(self._arguments):
            if isinstance(argument, Tensor) and _same_view(argument, tensor):
                return i
        return None


def _law(func: Any, position: int, options: dict[str, Any]) -> TieLaw:
    many = func in MANY_INDICES
    dim = options.get("dim", -1 if many else None)
    return TieLaw(position, dim, bool(options.get("keepdim", False)), many)


def _same_view(a: Tensor, b: Tensor) -> bool:
    return (
        a.data_ptr() == b.data_ptr()
        and a.shape == b.shape
        and a.stride() == b.stride()
        and a.dtype == b.dtype
    )


_LAWS: weakref.WeakKeyDictionary[Reference, dict[int, TieLaw]] = weakref.WeakKeyDictionary()


def tie_laws(reference: Reference, draw: Draw) -> dict[int, TieLaw]:
    """Return the outputs, by position, that hold indices into an argument of forward.

    The reference runs once, on the first call; later calls know.
    """
    if reference not in _LAWS:
        mode = _Follow(draw.inputs)
        with mode:
            outputs: Outputs = reference.eager(draw)
        _LAWS[reference] = {
            i: law
            for i, output in enumerate(outputs)
            for index, law in mode.found
            if output.dtype is torch.int64 and _same_view(output, index)
        }
    return _LAWS[reference]


def only_ties(
    reference: Reference, draw: Draw, position: int, candidate: Tensor, golden: Tensor
) -> bool:
    """Whether an output that differs from the golden names equal values all the same.

    Args:
        reference: of the problem.
        draw: whose inputs the call had.
        position: of the output.
        candidate: the output.
        golden: what belongs there.
    """
    if candidate.dtype is not torch.int64:
        return False
    law = tie_laws(reference, draw).get(position)
    if law is None:
        return False
    return law.agrees(candidate, golden, draw.inputs[law.argument])
