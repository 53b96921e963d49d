"""Clocks: to a candidate, time passes between two calls as if its user had gone home and come back.

A forward that turns wrong half a minute after its import is right in every check that is over by
then. Nobody can wait that long for each kernel, so the functions of Python's `time` jump ahead
between calls. Within a call they run as ever: a candidate may time its own launches.

Covered: the functions of `time`, where a candidate takes them from that module. Not covered: those
that other modules took from it before (`queue.time`), and other sources of time (`numpy`, `uuid`,
`os.times`, files, C++, the device); the static rules name the plainest of those.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_NAMES = ("clock_gettime", "monotonic", "perf_counter", "process_time", "thread_time", "time")
_TEXTS = ("ctime", "gmtime", "localtime")
"""Of now, where they are not told of when."""
_NS = 1_000_000_000


class Clocks:
    """Moves this process's clocks ahead, once it is installed."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        self._saved: list[tuple[str, Any]] = []

    def install(self) -> None:
        """Stand before the functions of `time`."""
        for name in _NAMES:
            for suffix, unit in (("", 1.0), ("_ns", _NS)):
                stock = getattr(time, name + suffix, None)
                if stock is not None:
                    self._saved.append((name + suffix, stock))
                    setattr(time, name + suffix, self._moved(stock, unit))
        for name in (*_TEXTS, "asctime", "strftime"):
            self._saved.append((name, getattr(time, name)))
        for name in _TEXTS:
            setattr(time, name, _of(getattr(time, name)))
        time.asctime = _at_now(time.asctime, 0)
        time.strftime = _at_now(time.strftime, 1)

    def remove(self) -> None:
        """Give the functions back."""
        for name, stock in self._saved:
            setattr(time, name, stock)
        self._saved = []

    def jump(self, seconds: float) -> None:
        """Let so much time pass, at least 0: clocks never go back."""
        self._ahead_s += max(seconds, 0.0)

    def _moved(self, stock: Callable[..., Any], unit: float) -> Callable[..., Any]:
        def read(*args: Any) -> Any:
            found = stock(*args)
            return found + type(found)(self._ahead_s * unit)

        return read


def _of(stock: Callable[..., Any]) -> Callable[..., Any]:
    def tell(seconds: float | None = None) -> Any:
        return stock(time.time() if seconds is None else seconds)

    return tell


def _at_now(stock: Callable[..., Any], place: int) -> Callable[..., Any]:
    """Return a function whose last argument, the one at `place`, is now where it is left out."""

    def tell(*args: Any) -> Any:
        return stock(*args, time.localtime()) if len(args) == place else stock(*args)

    return tell
