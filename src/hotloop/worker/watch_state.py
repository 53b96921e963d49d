"""The state that the watch itself reads by: names of its modules, methods of tensors.

What a candidate replaces for the length of an operation and puts back is not there at the end of a
request. So these few are looked at whenever the watch is about to read: by identity, since a thing
put in their place may claim to be equal to anything.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

# Bound before a candidate could replace them.
_all, _map, _is = all, map, operator.is_

METHODS = vars(torch.Tensor).keys() | vars(torch._C.TensorBase).keys()
"""Of tensors; one that is set on `torch.Tensor` stands before torch's own."""


def tensor_methods() -> dict[str, Any]:
    """Return what the names of tensors' methods stand for; torch's own cannot be replaced."""
    return {name: value for name, value in vars(torch.Tensor).items() if name in METHODS}


class WatchState:
    """Remembers names of modules and of their classes, and methods of tensors."""

    def __init__(self, modules: list[ModuleType]) -> None:
        """Remember them as they are; before a candidate is loaded."""
        names = {module.__name__ for module in modules}
        classes = [
            value
            for module in modules
            for value in vars(module).values()
            if isinstance(value, type) and value.__module__ in names
        ]
        self._owners: list[tuple[Any, dict[str, Any]]] = [
            (owner, dict(vars(owner))) for owner in (*modules, *dict.fromkeys(classes))
        ]
        self._methods = tensor_methods()
        self.changed: dict[str, None] = {}
        """What was found changed, ever."""

    def look(self) -> None:
        """Note what is not what it was."""
        for owner, before in self._owners:
            if not _begins_with(vars(owner), before):
                self._note(owner.__name__, before, vars(owner))
        now = tensor_methods()
        if len(now) != len(self._methods) or not _begins_with(now, self._methods):
            self._note("Tensor", self._methods, now)

    def _note(self, owner: str, before: Any, now: Any) -> None:
        gone = object()
        names = [n for n in (*before, *now) if before.get(n, gone) is not now.get(n, gone)]
        for name in names[:8]:
            if name in before or owner == "Tensor":
                self.changed[f"{owner}.{name}"] = None


def _begins_with(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    # Not by `id`: Python tells its audit hooks of each, a millisecond a look.
    return len(now) >= len(before) and _all(_map(_is, now.values(), before.values()))
