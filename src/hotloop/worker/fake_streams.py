"""Streams and events of a GPU that is not there: work is in order, so nobody has to wait.

Without values and without times: what has one to give, such as `Event.elapsed_time`, is left out.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

_DEVICE = torch.device("cuda", 0)


class Event:
    """`torch.cuda.Event`: has happened already."""

    cuda_event = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = _DEVICE

    def record(self, stream: Any = None) -> None:
        """There is nothing to note."""

    def wait(self, stream: Any = None) -> None:
        """There is nothing to wait for."""

    def query(self) -> bool:
        """Return True: it has happened."""
        return True

    def synchronize(self) -> None:
        """There is nothing to wait for."""


class Stream:
    """`torch.cuda.Stream`: enough of one to be made, entered, passed around and waited for."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = _DEVICE
        self.priority = priority

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        """There is no former stream to go back to: they are all one."""

    def query(self) -> bool:
        """Return True: all work is done."""
        return True

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """There is nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """There is nothing to wait for."""

    def record_event(self, event: Any = None) -> Any:
        """Return an event that has happened."""
        return Event() if event is None else event


def entered(stream: Any = None) -> AbstractContextManager[Any]:
    """Return what `torch.cuda.stream(side)` does here: nothing."""
    return nullcontext(stream)
