"""Host reads: values of tensors that a forward takes into host memory, where any code may go on.

What Python, numpy or the C library computes there no dispatch mode sees. A kernel that then copies
the result back does not do the work. Reading a few values (a count, a scale) is honest, and so are
addresses, sizes and the summary that a `print` shows.

Two watchers, since torch's function mode is off while a function runs that it was shown, and that
function may call back: the mode, and Python's profile hook, which sees calls of methods wherever
they come from. What leaves through the dispatcher (single values, copies from a device) is counted
in `library_calls.py`.

Covered: torch's ways to hand values out, whatever the tensor's device. Not covered: raw pointers
(`ctypes` is refused by the text), kernels that write into pinned host memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch
from torch import _tensor_str
from torch.overrides import TorchFunctionMode
from torch.storage import UntypedStorage
from torch.utils import dlpack

from hotloop.worker.launches import Watcher

NAMES = frozenset(
    {
        "__array__", "__complex__", "__dlpack__", "__float__", "__int__", "__reduce_ex__",
        "apply_", "item", "map2_", "map_", "numpy", "tolist",
    }
)  # fmt: skip
"""Methods that hand values to the host, all at once or one by one."""
MOVES = frozenset({"cpu", "to"})
"""Methods that may move a tensor of a device into host memory."""
GONE = "setprofile"
"""In place of a method: the hook was taken away."""
OTHERS = frozenset({"storage", "save", "to_dlpack", "print", GONE})
"""Ways past the methods: bytes of a storage, files in memory, capsules, text."""
HOST_READS = NAMES | MOVES | OTHERS
DEVICE_READS = frozenset({"_local_scalar_dense", "_device_to_host"})
"""What the dispatcher sees of it: single values, and copies from a device."""
PRINTED = 2000
"""Values that may be printed in one call: two small tensors in full."""


class HostReads(TorchFunctionMode):
    """Notes how many values each method handed to the host."""

    def __init__(self, is_paused: Callable[[], bool]) -> None:
        """Watch a forward; nothing is noted while `is_paused`, as inside an interpreted kernel."""
        super().__init__()
        self._is_paused = is_paused
        self.counts: dict[str, int] = {}
        self._hook = self._see
        self._readers = _readers()
        self._is_noted = False  # the call that runs is counted
        self._printer: FrameType | None = None  # which is counted, with all below it
        self._last: tuple[str, int] | None = None  # what the hook counted, before the mode sees it

    @property
    def read(self) -> dict[str, int]:
        """Method -> elements, of all its calls together."""
        found = {**self.counts, "print": self.counts.get("print", 0) - PRINTED}
        return {name: n for name, n in found.items() if n > 0}

    def __enter__(self) -> HostReads:
        super().__enter__()
        sys.setprofile(self._hook)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._pause()
        super().__exit__(*exc)

    def apart_from(self, before_launch: Watcher) -> Watcher:
        """Return a watcher of launches that takes the hook away for a kernel: it would slow it."""

        def before(tensors: list[torch.Tensor]) -> Callable[[], None]:
            self._pause()
            after = before_launch(tensors)

            def resume() -> None:
                after()
                sys.setprofile(self._hook)

            return resume

        return before

    def _pause(self) -> None:
        if sys.getprofile() is not self._hook:
            self._note(GONE, 1 << 60)
        sys.setprofile(None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` unchanged and note it."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        source = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if source is None or name not in NAMES:
            out = func(*args, **kwargs)
            if source is not None and name in MOVES and _is_moved(source, out):
                self._note(name, source.numel())
            return out
        if self._last != (name, id(source)):
            self._note(name, source.numel())
        self._is_noted = True
        try:
            return func(*args, **kwargs)
        finally:
            self._is_noted = False

    def _note(self, name: str, n: int) -> None:
        if self._printer is None and not self._is_paused():
            self.counts[name] = self.counts.get(name, 0) + n

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        """Note a call that Python is about to make."""
        if self._is_noted:
            return
        if event == "return" and frame is self._printer:
            self._printer = None
        elif event == "c_call" and arg.__name__ in NAMES:
            tensor = getattr(arg, "__self__", None)
            if isinstance(tensor, torch.Tensor):
                self._last = (arg.__name__, id(tensor))
                self._note(arg.__name__, tensor.numel())
        elif event == "call" and frame.f_code in self._readers:
            name, count = self._readers[frame.f_code]
            values = frame.f_locals
            self._last = (name, id(values.get("self")))
            self._note(name, count(values))
            if name == "print" and self._printer is None:
                self._printer = frame


def _is_moved(source: torch.Tensor, out: Any) -> bool:
    return (
        source.device.type != "cpu" and isinstance(out, torch.Tensor) and out.device.type == "cpu"
    )


def wrap_capsules() -> None:
    """Put functions of Python, which the hook sees, before those that make DLPack capsules.

    For the rest of this process; before a candidate can take hold of torch's own.
    """
    for owner in (torch, torch._C, dlpack):
        for name in ("to_dlpack", "_to_dlpack", "_to_dlpack_versioned"):
            stock = getattr(owner, name, None)
            if stock is not None and not hasattr(stock, "__code__"):
                setattr(owner, name, _capsule_maker(stock))


def _capsule_maker(stock: Any) -> Any:
    def to_dlpack(*args: Any, **kwargs: Any) -> Any:
        return stock(*args, **kwargs)

    return to_dlpack


def _readers() -> dict[CodeType, tuple[str, Callable[[dict[str, Any]], int]]]:
    """Return functions of Python that read values: name, and how many, by their arguments."""
    capsule: Any = _capsule_maker(None)
    functions: list[tuple[Any, str, Callable[[dict[str, Any]], int]]] = [
        (torch.Tensor.__dlpack__, "__dlpack__", lambda values: _numel(values.get("self"))),
        (torch.Tensor.__reduce_ex__, "__reduce_ex__", lambda values: _numel(values.get("self"))),
        (capsule, "to_dlpack", lambda values: _numel(values.get("args"))),
        (torch.save, "save", lambda values: _numel(values.get("obj"))),
        (_tensor_str._str, "print", lambda values: _printed(values.get("self"))),
        (UntypedStorage.__getitem__, "storage", _bytes_read),
    ]
    return {function.__code__: (name, count) for function, name, count in functions}


def _numel(value: Any) -> int:
    leaves = torch.utils._pytree.tree_leaves(value)
    return sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor))


def _printed(tensor: Any) -> int:
    if not isinstance(tensor, torch.Tensor):
        return 0
    options = _tensor_str.PRINT_OPTS
    if tensor.numel() <= options.threshold:
        return tensor.numel()
    shown: int = (2 * options.edgeitems) ** min(8, tensor.dim())
    return min(tensor.numel(), shown)


def _bytes_read(values: dict[str, Any]) -> int:
    args = values.get("args") or (0,)
    if not isinstance(args[0], slice):
        return 1
    return len(range(*args[0].indices(values["self"].nbytes())))
