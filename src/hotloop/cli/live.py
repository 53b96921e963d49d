"""The live screen: budget bar, attempts, what is running, best so far. Drawn by rich on stderr."""

from __future__ import annotations

import time
from typing import TextIO

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hotloop.cli import wording
from hotloop.cli.progress import Progress
from hotloop.cli.redrawn import Redrawn
from hotloop.cli.screen import (
    BAR_CELLS,
    ROWS_SHOWN,
    WARNING_CHARACTERS,
    best_text,
    budget_text,
    setup_line,
    waiting_text,
)
from hotloop.core.event import Event

_STYLE = {"PASSED": "green", "COMPILED_ONLY": "cyan", "INCONCLUSIVE": "yellow"}


class LiveScreen(Redrawn):
    """Takes events; the next redraw shows them."""

    def __init__(self, stream: TextIO) -> None:
        self._progress = Progress()
        self._began_s = time.monotonic()
        super().__init__(stream)

    def __call__(self, event: Event) -> None:
        """Take in one event; the next redraw shows it."""
        with self._lock:
            self._progress.take(event)

    def picture(self) -> RenderableType:
        """Return the whole screen for the state as it is."""
        return draw(self._progress, time.monotonic() - self._began_s)


def draw(progress: Progress, waited_s: float = 0.0) -> RenderableType:
    """Return the whole screen for one state, `waited_s` after its beginning."""
    timed = progress.is_timed
    parts: list[RenderableType] = [Text(setup_line(progress, waited_s)), _budget(progress)]
    if progress.attempts:
        parts.append(_table(progress, timed=timed))
    busy = [f"{phase} {i}" for i, phase in sorted(progress.phase.items())]
    if busy:
        parts.append(Text("now: " + ", ".join(busy), style="dim"))
    if progress.waiting:
        parts.append(Text(waiting_text(progress.waiting), style="yellow"))
    if progress.best is not None:
        parts.append(Text("best so far: " + best_text(progress.best, timed=timed), style="bold"))
    for attempt_id, verdict in sorted(progress.final.items()):
        parts.append(Text(f"final check of {attempt_id}: {wording.outcome(verdict)}"))
    for message in progress.warnings[-3:]:
        warning = f"warning: {wording.plain(message, limit=WARNING_CHARACTERS)}"
        parts.append(Text(warning, style="yellow"))
    if progress.stopped is not None:
        parts.append(Text(f"stopped: {wording.plain(progress.stopped)}"))
    return Group(*parts)


def _budget(progress: Progress) -> RenderableType:
    text = Text(budget_text(progress))
    if not progress.limit_s:
        return text
    grid = Table.grid(padding=(0, 1))
    done = min(progress.spent_s, progress.limit_s)
    bar = ProgressBar(total=progress.limit_s, completed=done, width=BAR_CELLS)
    grid.add_row(bar, text)
    return grid


def _table(progress: Progress, *, timed: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    actions = progress.has_actions
    headings = wording.columns(timed=timed, actions=actions)
    place = headings.index("status")
    for heading in headings:
        table.add_column(heading, no_wrap=True)
    for attempt_id in sorted(progress.attempts)[-ROWS_SHOWN:]:
        attempt = progress.attempts[attempt_id]
        phase = progress.phase.get(attempt_id)
        cells = [Text(c) for c in wording.row(attempt, phase, timed=timed, actions=actions)]
        status = attempt.verdict.status.value if attempt.verdict else ""
        cells[place].stylize(_STYLE.get(status, "red" if status else "dim"))
        table.add_row(*cells)
    hidden = len(progress.attempts) - ROWS_SHOWN
    if hidden > 0:
        table.caption = f"{hidden} earlier attempts not shown"
    return table
