"""Host reads: values of tensors that a forward takes into host memory, where any code may go on.

What Python, numpy or the C library computes there no dispatch mode sees. A kernel that then copies
the result back does not do the work. Reading a few values (a count, a scale) is honest, and so are
addresses, sizes and the summary that a `print` shows.

Two watchers, since torch's function mode is off while a function runs that it was shown, and that
function may call back: the mode, and Python's profile hook, which sees calls of methods wherever
they come from. What leaves through the dispatcher (single values, copies from a device) is counted
in `library_calls.py`.

Covered: torch's ways to hand values out, whatever the tensor's device; what a candidate's code does
while torch prints or reads is its own, as is what it does inside a launch (`call_sites.py`). Not
covered: raw pointers (`ctypes` is refused by the text), kernels that write into pinned host memory.
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

from hotloop.worker.call_sites import is_kernels, is_librarys
from hotloop.worker.launches import Watcher
from hotloop.worker.tensors_in import tensors_in

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
FOREIGN = "foreign_memory"
"""In place of a method: written where `numpy` reads; `library_calls.py` counts it."""
SPLIT = "tensor_split"
"""Reads the places where it splits; its parts' offsets, which any code may ask for, are these."""
OTHERS = frozenset({"storage", "save", "to_dlpack", "print", SPLIT, GONE, FOREIGN})
"""Ways past the methods: bytes of a storage, files in memory, capsules, text, offsets of parts."""
OF_STORAGES = frozenset({"_share_fd_cpu_", "_share_filename_cpu_", "_write_file"})
"""Methods of storages that hand all their bytes to files."""
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
        self._noted: tuple[int, int] | None = None  # tensor and size of the counted call that runs
        # A print that is counted, and how much: so is what torch reads for it.
        self._printer: tuple[FrameType, int] | None = None
        # What the hook counted before the mode sees it: method, tensor, size.
        self._last: tuple[str, int, int] | None = None

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
        if name.startswith(SPLIT):  # as a function, a method or an operator
            self._note(SPLIT, _numel([*args[1:], *kwargs.values()]), sys._getframe(1))
        if source is None or name not in NAMES:
            out = func(*args, **kwargs)
            if source is not None and name in MOVES and _is_moved(source, out):
                self._note(name, source.numel(), sys._getframe(1))
            return out
        last, self._last = self._last, None
        size = source.numel()
        if last != (name, id(source), size):
            self._note(name, size, sys._getframe(1))
        before, self._noted = self._noted, (id(source), size)
        try:
            return func(*args, **kwargs)
        finally:
            self._noted = before

    def _note(self, name: str, n: int, reader: FrameType | None = None) -> None:
        if self._printer is not None and n <= self._printer[1]:
            return
        if reader is not None and self._is_paused() and is_kernels(reader, is_work=True):
            return
        self.counts[name] = self.counts.get(name, 0) + n

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        """Note a call that Python is about to make."""
        if event == "c_call":
            self._see_method(frame, arg)
        elif self._printer is not None and event == "return":
            if frame is self._printer[0]:
                self._printer = None
        elif event == "call" and frame.f_code in self._readers:
            name, count = self._readers[frame.f_code]
            values = frame.f_locals
            size = count(values)
            owner = values.get("self", next(iter(values.get("args", ())), None))
            if not self._see_read(name, owner, size, frame) or name != "print":
                return
            if self._printer is None:
                self._printer = frame, size
        elif event == "call" and self._printer is not None and _is_others(frame.f_code):
            self._printer = None  # what the candidate does meanwhile is no part of the print

    def _see_method(self, frame: FrameType, method: Any) -> None:
        name, owner = method.__name__, getattr(method, "__self__", None)
        if name in NAMES and isinstance(owner, torch.Tensor):
            self._see_read(name, owner, owner.numel(), frame)
        elif name in OF_STORAGES and isinstance(owner, torch._C.StorageBase):
            self._note("storage", owner.nbytes(), frame)

    def _see_read(self, name: str, owner: Any, size: int, frame: FrameType) -> bool:
        """Note a read, but for those of the call that is counted; return whether it was."""
        if self._noted is not None and self._noted[0] == id(owner) and size <= self._noted[1]:
            return False
        self._last = (name, id(owner), size)
        self._note(name, size, frame)
        return True


def _is_others(code: CodeType) -> bool:
    """Whether code is no library's, nor what one made of a text, as for a named tuple."""
    return not is_librarys(code) and code.co_filename != "<string>"


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
    return sum(tensor.numel() for tensor in tensors_in(value))


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
