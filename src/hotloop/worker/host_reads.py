"""Host reads: values of tensors that a forward takes into host memory, where any code may go on.

What Python, numpy or the C library computes there no dispatch mode sees. A kernel that then copies
the result back does not do the work. Reading a few values (a count, a scale) is honest.

Covered: torch's ways to hand values out, whatever the tensor's device. Not covered: raw pointers
(`ctypes` is refused by the text), kernels that write into pinned host memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

NAMES = frozenset(
    {"tolist", "numpy", "__array__", "__dlpack__", "item", "__float__", "__int__", "__complex__"}
)
"""Methods that hand values to the host, all at once or one by one."""
MOVES = frozenset({"cpu", "to"})
"""Methods that may move a tensor of a device into host memory."""
HOST_READS = NAMES | MOVES


class HostReads(TorchFunctionMode):
    """Notes how many values each method handed to the host."""

    def __init__(self, is_paused: Callable[[], bool]) -> None:
        """Watch a forward; nothing is noted while `is_paused`, as inside an interpreted kernel."""
        super().__init__()
        self._is_paused = is_paused
        self.read: dict[str, int] = {}
        """Method -> elements, of all its calls together."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func` unchanged and note it."""
        out = func(*args, **(kwargs or {}))
        if self._is_paused():
            return out
        name = getattr(func, "__name__", "")
        source = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if source is not None and (name in NAMES or (name in MOVES and _is_moved(source, out))):
            self.read[name] = self.read.get(name, 0) + source.numel()
        return out


def _is_moved(source: torch.Tensor, out: Any) -> bool:
    return (
        source.device.type != "cpu" and isinstance(out, torch.Tensor) and out.device.type == "cpu"
    )
