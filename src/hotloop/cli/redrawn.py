"""A screen that rich redraws a few times a second while the block runs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Self, TextIO

from rich.console import Console, RenderableType
from rich.live import Live


class Redrawn(ABC):
    """Texts are never read as markup. Subclasses change their state under `_lock`."""

    def __init__(self, stream: TextIO) -> None:
        """Open the screen; called last by a subclass, for its picture is asked for at once."""
        self._lock = threading.Lock()
        self._live = Live(
            console=Console(file=stream, stderr=False),
            get_renderable=self._draw,
            refresh_per_second=4,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def _draw(self) -> RenderableType:
        with self._lock:
            return self.picture()

    @abstractmethod
    def picture(self) -> RenderableType:
        """Return the whole screen for the state as it is."""
