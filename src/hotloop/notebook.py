"""A live cell in a notebook: `hotloop.optimize(..., listen=LiveCell())`.

What the terminal's live screen draws, drawn into one output of the cell, which is replaced a few
times a second while the run goes on.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console

from hotloop.cli.live import draw
from hotloop.cli.progress import Progress
from hotloop.core.event import Event
from hotloop.errors import ConfigError

WIDTH = 110
REFRESH_S = 0.25
_FORMAT = '<pre style="line-height:1.25;overflow-x:auto;font-family:monospace">{code}</pre>'
_ALWAYS_SHOWN = frozenset({"setup", "best", "final", "stopped", "waiting"})


class LiveCell:
    """A listener for `optimize` that shows the run in the cell that made it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Open an output in the current cell.

        Raises:
            ConfigError: there is no IPython here.
        """
        try:
            from IPython.display import HTML, display
        except ModuleNotFoundError as exc:
            raise ConfigError(
                "LiveCell: expected a notebook, and IPython is not installed; leave listen out, or "
                "give a function of one event"
            ) from exc
        self._html = HTML
        self._progress = Progress()
        self._clock = clock
        self._drawn_s = clock()
        self._output: Any = display(self._picture(), display_id=True)

    def __call__(self, event: Event) -> None:
        """Take in one event, and draw if the last drawing is old or the event matters."""
        self._progress.take(event)
        now_s = self._clock()
        if event.kind in _ALWAYS_SHOWN or now_s - self._drawn_s >= REFRESH_S:
            self._drawn_s = now_s
            if self._output is not None:  # in plain IPython there is nothing to replace
                self._output.update(self._picture())

    def _picture(self) -> Any:
        return self._html(html_of(self._progress))


def html_of(progress: Progress) -> str:
    """Return the live screen as one HTML element; all texts are escaped."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
    console.print(draw(progress))
    return console.export_html(inline_styles=True, code_format=_FORMAT)
