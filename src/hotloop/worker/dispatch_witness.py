"""A second witness of torch's operations: what ran on this thread while no dispatch mode looked.

A dispatch mode can be switched off by the code that it watches, for the length of one operation,
and is back on afterwards. Torch's profiler does not go by modes: it records every operation, and
beside it whether a mode was asked. An operation that no mode was asked about was hidden from it.

Honest code hides little: printing a tensor does, of a few values. So sizes are noted.

The profiler also needs no mode. In a bare call, one without any, it tells how much torch does where
a forward finds none on; that must not be more than under watch.

Not covered: other threads (`starts.py`), and kernels called below the dispatcher's own entry
(`redispatch`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker.census import NO_ARITHMETIC

MODE = "PythonDispatchMode"
"""What the profiler calls the moment in which a mode is asked."""
GONE = "profiler"
"""In place of an operation: recording was ended by somebody else."""
ALL = 1 << 50
"""More elements than there are."""
OURS = f"hotloop {secrets.token_hex(8)}"
"""A span that is ours, by a name that nobody knows: what runs in it is nobody's work."""
PREFIX = "aten::"
_LIBRARIES = frozenset(
    name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()
) - {"aten", "prim", "profiler"}
"""Namespaces that came with torch; those that a candidate adds are not among them."""


class DispatchWitness:
    """Records each block while it is `awake`; what it saw is known after it."""

    def __init__(self) -> None:
        self.awake = False
        self.hidden: dict[str, int] = {}
        """Operation -> elements of its largest operands, of all calls that no mode was asked of."""
        self.work = 0
        """Elements of the operands of all of torch's operations with arithmetic."""
        self._works = _is_able()

    def __enter__(self) -> DispatchWitness:
        """Begin to record."""
        if self._works and self.awake:
            self.hidden, self.work = {}, 0
            _start()
        return self

    def __exit__(self, *exc: object) -> None:
        """End, and find what was done and what was hidden."""
        if not (self._works and self.awake):
            return
        try:
            threads = torch.autograd._disable_profiler_legacy()
        except RuntimeError:
            self.hidden, self.work = {GONE: ALL}, ALL
            return
        for records in threads:
            done, hidden = read_events(records)
            self.work += sum(done.values())
            for name, size in hidden.items():
                self.hidden[name] = self.hidden.get(name, 0) + size


def ours() -> Any:
    """Return a context whose operations are not counted."""
    return torch._C._profiler._RecordFunctionFast(OURS)


def _start() -> None:
    from torch._C._profiler import _ExperimentalConfig

    state, shapes = torch.autograd.ProfilerState.CPU, True
    nothing_else = (False, False, False, False)
    config = torch.autograd.ProfilerConfig(state, shapes, *nothing_else, _ExperimentalConfig())
    torch.autograd._enable_profiler_legacy(config)


@dataclass(slots=True)
class _Open:
    """An event that has begun."""

    event: Any
    name: str
    is_work: bool
    asked: bool = False
    """Whether a mode was asked below it."""


def read_events(records: Iterable[Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Return what was done and what of it no mode was asked about: operation -> elements.

    Of operations inside operations the outermost that does work itself counts, on either side of
    a mode: in inference mode those are asked about operations that are made of others.
    """
    done: dict[str, int] = {}
    hidden: dict[str, int] = {}
    open_: list[_Open] = []
    working = asking = own = 0  # how many of the open ones are work, a mode's, and ours
    for record in records:
        kind = record.kind()
        if kind == "push":
            name = record.name()
            begun = _Open(record, name, not own and _is_work(name))
            if begun.is_work and not working:
                done[name] = done.get(name, 0) + _size(record)
            working += begun.is_work
            own += name == OURS
            if name == MODE:
                asking += 1
                for outer in open_:
                    outer.asked = True
            open_.append(begun)
        elif kind == "pop" and open_:
            begun = open_.pop()
            working -= begun.is_work
            own -= begun.name == OURS
            asking -= begun.name == MODE
            if begun.is_work and not begun.asked and not asking:
                plain = begun.name.removeprefix(PREFIX)
                hidden[plain] = hidden.get(plain, 0) + _size(begun.event)
    return done, hidden


@cache
def _is_work(name: str) -> bool:
    """Whether an event is an operation with a kernel; one made of others may do nothing at all."""
    if name.partition("::")[0] in _LIBRARIES:
        return True
    if not name.startswith(PREFIX):
        return False
    plain = name.removeprefix(PREFIX)
    if (plain.rstrip("_") or plain) in NO_ARITHMETIC:
        return False
    packet = getattr(torch.ops.aten, plain, None)
    overloads = packet.overloads() if packet is not None else []
    qualified = (name if o == "default" else f"{name}.{o}" for o in overloads if "out" not in o)
    return any(_has_kernel(overload) for overload in qualified)


def _has_kernel(overload: str) -> bool:
    try:
        return not torch._C._dispatch_has_kernel_for_dispatch_key(
            overload, "CompositeImplicitAutograd"
        )
    except RuntimeError:  # one of TorchScript's, without tensors
        return False


def _size(event: Any) -> int:
    sizes = [1]
    for shape in event.shapes():
        size = 1
        for extent in shape:
            size *= extent
        sizes.append(size if shape else 0)
    return max(sizes)


class _Blind(TorchDispatchMode):
    """Looks at nothing; whether the profiler tells that it was asked is what is tried."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


_able: list[bool] = []


def _is_able() -> bool:
    """Whether this torch's profiler tells a seen operation from a hidden one; tried once."""
    if not _able:
        _able.append(_tells_apart())
    return _able[0]


def _tells_apart() -> bool:
    x = torch.ones(2)
    try:
        _start()
        with _Blind():
            torch.sum(x)
        seen = [read_events(records)[1] for records in torch.autograd._disable_profiler_legacy()]
        _start()
        torch.sum(x)
        unseen = [read_events(records)[1] for records in torch.autograd._disable_profiler_legacy()]
    except (RuntimeError, TypeError, AttributeError, ImportError):
        return False
    return not any(seen) and any(unseen)
