"""Launches: a look at each kernel launch of a candidate's forward, and the power to leave it out.

Runs in the candidate's process, installed before the candidate is imported, where all ways to
launch a Triton kernel end: the interpreter's grid on `cpu`, the recorder's launcher on `cuda`. What
it sees is a claim: a candidate can defeat it.

Not covered: kernels that do not come from Triton (extensions in C++).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

Watcher = Callable[[list[torch.Tensor]], Callable[[], None]]
"""Called with the tensor arguments before a launch; what it returns is called after it."""


class Launches:
    """Counts launches while it watches; with `left_out` none of them runs."""

    def __init__(self) -> None:
        self.count = 0
        self.watching = False
        self._left_out = False
        self._watcher: Watcher | None = None

    @contextmanager
    def watched(
        self, *, left_out: bool = False, watcher: Watcher | None = None
    ) -> Iterator[Launches]:
        """Count the launches inside the block."""
        self.count, self.watching = 0, True
        self._left_out, self._watcher = left_out, watcher
        try:
            yield self
        finally:
            self.watching, self._watcher = False, None

    def run(
        self,
        arguments: Sequence[Any],
        launch: Callable[[], Any],
    ) -> Any:
        """Launch a kernel, or not."""
        if not self.watching:
            return launch()
        self.count += 1
        if self._left_out:
            return None
        if self._watcher is None:
            return launch()
        after = self._watcher(list(_tensors(arguments)))
        try:
            return launch()
        finally:  # a launch that fails must not leave the rest of the call unseen
            after()

    def watch_interpreter(self) -> None:
        """Stand before Triton's interpreter in this process."""
        from triton.runtime import interpreter

        stock = interpreter.GridExecutor.__call__

        def call(executor: Any, *args: Any, **named: Any) -> Any:
            if self.watching:  # before the launch: what a grid function does is no kernel's work
                executor.grid = _sized_grid(executor, args, named)
            arguments = (*args, *named.values())
            return self.run(arguments, lambda: stock(executor, *args, **named))

        interpreter.GridExecutor.__call__ = call


def _sized_grid(executor: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    # The candidate's own function, which could do the work while it is asked for a size.
    if not callable(executor.grid):
        return executor.grid
    known = inspect.signature(executor.fn).parameters
    given = {name: value for name, value in named.items() if name in known}
    return executor.grid(inspect.getcallargs(executor.fn, *args, **given))


def _tensors(arguments: Sequence[Any]) -> Iterator[torch.Tensor]:
    for value in arguments:
        tensor = getattr(value, "base", value)  # of a descriptor or a reinterpreted tensor
        if isinstance(value, (tuple, list)):
            yield from _tensors(value)
        elif isinstance(tensor, torch.Tensor):
            yield tensor
