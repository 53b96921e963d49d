"""Frame reads: a candidate that takes hold of Python's frames, and so of the watch's variables.

Names in a text can be made. But Python says when a frame is asked for, by whatever name, and who
asks: where that is not a library, it is refused and told.

Covered: `sys._getframe` and its kin, the frames of tracebacks, generators and coroutines, trace and
profile functions, objects listed by `gc`, code that is made to look like a library's. Not covered:
a function of a library that reads an attribute by a name that it is given.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from hotloop.worker.call_sites import is_librarys

_EVENTS = frozenset(
    {
        "code.__new__", "gc.get_objects", "gc.get_referents", "gc.get_referrers",
        "sys._current_exceptions", "sys._current_frames", "sys._getframe", "sys.setprofile",
        "sys.settrace",
    }
)  # fmt: skip
_ATTRIBUTES = {
    "object.__getattr__": frozenset({"ag_frame", "cr_frame", "gi_frame", "tb_frame"}),
    "object.__setattr__": frozenset({"__code__"}),
}


class FrameReads:
    """Refuses frames to whoever is no library, once it is installed; the hook stays for good."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        """What was asked for."""
        self._is_on = False
        self._is_asking = False  # the hook's own look at its caller is heard, too

    def install(self) -> None:
        """Listen from now on."""
        self._is_on = True
        sys.addaudithook(self._hear)

    def remove(self) -> None:
        """Refuse no more."""
        self._is_on = False

    def _hear(self, event: str, args: Sequence[Any]) -> None:
        what = args[1] if event in _ATTRIBUTES else event
        if not self._is_on or self._is_asking or what not in _ATTRIBUTES.get(event, _EVENTS):
            return
        self._is_asking = True
        try:
            code = sys._getframe(1).f_code
        finally:
            self._is_asking = False
        if not is_librarys(code):
            self.refused.append(what)
            raise RuntimeError(f"{what}: frames are not for kernels")
