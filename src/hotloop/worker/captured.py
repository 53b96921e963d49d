"""Tensors that a score_mod or mask_mod captures: plain globals of the file, or of a closure.

`get_buffers` is how a file declares them. What a function captures besides is found here through
its code, so that it can be moved to the device and named; it is fixed, the same for every seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple

import torch


class Capture(NamedTuple):
    """One captured tensor and where it is kept."""

    name: str
    tensor: torch.Tensor
    place: dict[str, Any] | CellType
    """The module's namespace, or the cell of a closure."""

    def replace(self, tensor: torch.Tensor) -> None:
        """Put another tensor in its place."""
        if isinstance(self.place, dict):
            self.place[self.name] = tensor
        else:
            self.place.cell_contents = tensor


def captured_tensors(functions: Iterator[Callable[..., Any] | None]) -> list[Capture]:
    """Return the tensors that functions, and those they call, read from globals and closures."""
    found: dict[int, Capture] = {}
    pending = [f for f in functions if isinstance(f, FunctionType)]
    seen: set[int] = set()
    while pending:
        function = pending.pop(0)
        if id(function) in seen:
            continue
        seen.add(id(function))
        for name, value, place in _reads(function):
            if isinstance(value, torch.Tensor):
                found.setdefault(id(value), Capture(name, value, place))
            elif isinstance(value, FunctionType) and value.__module__ == function.__module__:
                pending.append(value)
    return list(found.values())


def _reads(function: FunctionType) -> Iterator[tuple[str, Any, dict[str, Any] | CellType]]:
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name], function.__globals__
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            yield name, cell.cell_contents, cell
        except ValueError:  # a variable that is assigned later, or never
            continue


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
