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
from functools import cache
from typing import Any

import torch

Watcher = Callable[[list[torch.Tensor]], Callable[[], None]]
"""Called with the tensor arguments before a launch; what it returns is called after it."""


class Launches:
    """Counts launches while it watches; with `left_out` none of them runs."""

    def __init__(self) -> None:
        self.count = 0
        self.watching = False
        self.unwatched = 0
        """Launches since the start that nothing watched."""
        self.may_point = False
        """Whether a number among the arguments of the last launch may be an address."""
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
            self.unwatched += 1
            return launch()
        tensors = list(_tensors(arguments))
        self.may_point = _may_point(arguments)
        self.count += 1
        if self._left_out:
            return None
        if self._watcher is None:
            return launch()
        after = self._watcher(tensors)
        try:
            return launch()
        finally:  # a launch that fails must not leave the rest of the call unseen
            after()

    def watch_interpreter(self) -> None:
        """Stand before Triton's interpreter in this process."""
        from triton.runtime import interpreter

        stock = interpreter.GridExecutor.__call__

        def call(executor: Any, *args: Any, **named: Any) -> Any:
            hooks, grid = executor.pre_run_hooks, executor.grid
            try:
                executor.pre_run_hooks = []
                _run_hooks(hooks, executor, args, named)
                if self.watching:  # before the launch: what a grid function does is no kernel's
                    executor.grid = _sized_grid(executor, args, named)
                arguments = (*args, *named.values())
                return self.run(arguments, lambda: stock(executor, *args, **named))
            finally:  # `kernel[grid]` may be held, and called again with other arguments
                executor.pre_run_hooks, executor.grid = hooks, grid

        interpreter.GridExecutor.__call__ = call


def _sized_grid(executor: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    # The candidate's own function, which could do the work while it is asked for a size.
    if not callable(executor.grid):
        return executor.grid
    known = inspect.signature(executor.fn).parameters
    given = {name: value for name, value in named.items() if name in known}
    return executor.grid(inspect.getcallargs(executor.fn, *args, **given))


def _run_hooks(
    hooks: Sequence[Any], executor: Any, args: Sequence[Any], named: Mapping[str, Any]
) -> None:
    # Also the candidate's own. Triton's executor would run them inside of the launch.
    known = inspect.signature(executor.fn).parameters
    for hook in hooks:
        hook(*args, **{name: value for name, value in named.items() if name in known})


def _tensors(arguments: Sequence[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments, those of descriptors too.

    Raises:
        TypeError: an argument brings methods of its own to where a tensor's would run.
    """
    for value in arguments:
        if isinstance(value, (tuple, list)):
            yield from _tensors(value)
            continue
        tensor = _held(value)
        if isinstance(tensor, torch.Tensor) and type(tensor) in _PLAIN:
            if hidden := _hides(tensor):
                raise TypeError(
                    f"expected a tensor with torch's own `{hidden}` as an argument of a kernel, "
                    "got one with an attribute in its place; give the attribute another name"
                )
            yield tensor
        elif tensor is not value or isinstance(value, torch.Tensor):
            # They would run in the launch, where what torch does is taken for a kernel's.
            raise TypeError(
                "expected torch.Tensor, nn.Parameter or Triton's TensorDescriptor as an argument "
                f"of a kernel, got {type(value).__name__} with methods of its own; pass the tensor"
            )


_LOWEST_ADDRESS = 1 << 32
"""Neither the host nor a GPU gives memory below it to 64-bit programs. Sizes and strides are hardly
ever larger; seeds may be, and then count as addresses. An address in two halves is not seen."""


def _may_point(arguments: Sequence[Any]) -> bool:
    """Whether a number among arguments may be an address, from which a kernel makes a pointer."""
    return any(
        _may_point(value)
        if isinstance(value, (tuple, list))
        else isinstance(value, int) and abs(value) >= _LOWEST_ADDRESS
        for value in arguments
    )


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _held(value: Any) -> Any:
    """Return the tensor of a descriptor or a reinterpreted tensor; None for what hides one."""
    if isinstance(value, torch.Tensor):
        return value
    has_address = hasattr(value, "data_ptr")
    if has_address and type(value) is not _wrapper():
        return None
    if isinstance(getattr(type(value), "base", None), property):
        return None
    base = getattr(value, "base", value)
    return base if has_address or isinstance(base, torch.Tensor) else value


@cache
def _wrapper() -> type:
    from triton.runtime.jit import TensorWrapper

    return TensorWrapper


_ASKED = frozenset(
    {
        "base", "clone", "copy_", "cpu", "data_ptr", "element_size", "new_empty", "ptr_range",
        "set_", "size", "storage_offset", "stride", "to", "untyped_storage",
    }
)  # fmt: skip
"""What Triton and the recorder ask arguments for. Torch lets nobody replace `dtype` and `shape`."""


def _hides(tensor: torch.Tensor) -> str | None:
    """Return the name of something that stands in place of what a launch asks a tensor for.

    The watch calls further methods: what could run there is barred under all of torch's names,
    what only lies there (a copy in fp16 called `half`) is not.
    """
    for name, value in vars(tensor).items():
        is_called = callable(value) and callable(getattr(torch.Tensor, name, None))
        if name in _ASKED or is_called:
            return name
    return None
