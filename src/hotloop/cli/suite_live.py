"""The live screen of a suite: problems by state, what runs with its budget and best, what ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hotloop.cli import wording
from hotloop.cli.progress import Progress
from hotloop.cli.redrawn import Redrawn
from hotloop.cli.screen import BAR_CELLS, best_text
from hotloop.cli.suite_progress import SuiteProgress
from hotloop.core.event import Event

RUNNING_SHOWN, ENDED_SHOWN, NOTES_SHOWN = 16, 6, 4
_LINE_CHARACTERS = 160


class LiveSuite(Redrawn):
    """Takes events; the next redraw shows them."""

    def __init__(
        self,
        stream: TextIO,
        progress: SuiteProgress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._progress = progress
        self._clock, self._began_s = clock, clock()
        super().__init__(stream)

    def begin(self, name: str, limit_s: float | None = None) -> None:
        """Add a problem to those that run."""
        with self._lock:
            at_s = self._clock() - self._began_s
            self._progress.begin(name, at_s=at_s, limit_s=limit_s)

    def take(self, name: str, event: Event) -> None:
        """Take in one event; the next redraw shows it."""
        with self._lock:
            self._progress.take(name, event)

    def end(self, name: str, state: str, words: str) -> None:
        """Move a problem from those that run to those that ended."""
        with self._lock:
            self._progress.end(name, state, words)

    def say(self, name: str, line: str) -> None:
        """Show a line below."""
        with self._lock:
            self._progress.note(name, line)

    def picture(self) -> RenderableType:
        """Return the whole screen for the state as it is."""
        return draw_suite(self._progress, self._clock() - self._began_s)


def draw_suite(progress: SuiteProgress, elapsed_s: float) -> RenderableType:
    """Return the whole screen for one state, `elapsed_s` seconds into the session."""
    parts: list[RenderableType] = [_head(progress), _counts(progress, elapsed_s)]
    if progress.running:
        parts.append(_running(progress, elapsed_s))
    for name, words in progress.ended[-ENDED_SHOWN:]:
        parts.append(Text(_cut(f"{name}: {words}")))
    for line in progress.notes[-NOTES_SHOWN:]:
        parts.append(Text(_cut(line), style="yellow"))
    return Group(*parts)


def _head(progress: SuiteProgress) -> RenderableType:
    total = len(progress.states)
    grid = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(total, 1), completed=progress.settled, width=BAR_CELLS)
    grid.add_row(bar, Text(f"{progress.settled} of {total} problems have nothing left to do"))
    return grid


def _counts(progress: SuiteProgress, elapsed_s: float) -> Text:
    told = ", ".join(f"{count} {state}" for state, count in progress.counts)
    tokens, usd = progress.costs
    costs = f"; {wording.costs(tokens=tokens, usd=usd)}" if (tokens, usd) != (0, 0.0) else ""
    return Text(f"{told}; {elapsed_s:.0f} s in this session{costs}")


def _running(progress: SuiteProgress, elapsed_s: float) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("problem", "for", "budget", "attempts", "now", "best so far"):
        table.add_column(heading, no_wrap=True)
    runs = list(progress.running.items())
    for name, run in runs[-RUNNING_SHOWN:]:
        best = "-" if run.best is None else best_text(run.best, timed=run.is_timed)
        since = f"{max(0.0, elapsed_s - progress.began_s[name]):.0f} s"
        cells = (name, since, _budget(run), str(len(run.attempts)), _now(run), best)
        table.add_row(*(Text(_cut(cell)) for cell in cells))
    if len(runs) > RUNNING_SHOWN:
        table.caption = f"{len(runs) - RUNNING_SHOWN} more are running"
    return table


def _budget(run: Progress) -> str:
    limit = f" of {run.limit_s:.0f}" if run.limit_s else ""
    return f"{run.spent_s:.0f}{limit} s"


def _now(run: Progress) -> str:
    if run.info is None:
        return "loading"
    if run.waiting:
        return "waiting"
    phases = sorted(set(run.phase.values()))
    return ", ".join(phases) or "-"


def _cut(text: str) -> str:
    return wording.plain(text, limit=_LINE_CHARACTERS)
