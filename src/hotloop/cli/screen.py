"""What a person sees while a run goes on: a live table, or plain lines.

Both are listeners of the engine's events and write to stderr only. The live one needs a terminal;
with NO_COLOR, CI, a dumb terminal or a pipe there are plain lines, one an event that matters.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TextIO

from hotloop.cli import wording
from hotloop.cli.progress import Progress
from hotloop.core.attempt import Attempt
from hotloop.core.event import Event
from hotloop.core.verdict import Status
from hotloop.verify.local import LOAD_S

BAR_CELLS = 30
ROWS_SHOWN = 12
BUDGET_LINE_EVERY_S = 30.0
WARNING_CHARACTERS = 400
"""A warning says what to do at its end."""
LOADING_LINE_AFTER_S = 5.0
LOADING_LINE_EVERY_S = 30.0


class Screen(Protocol):
    """A listener that is open while the run lasts."""

    def __call__(self, event: Event) -> None:
        """Take in one event."""

    def __enter__(self) -> Screen:
        """Start showing."""

    def __exit__(self, *exc: object) -> None:
        """Stop showing and leave the terminal as it was."""


def open_screen(stream: TextIO, environ: Mapping[str, str]) -> Screen:
    """Return the screen that suits the stream."""
    if is_plain(stream, environ):
        return PlainScreen(stream)
    from hotloop.cli.live import LiveScreen  # rich is only loaded where it is shown

    return LiveScreen(stream)


def is_plain(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether nothing may be redrawn: no terminal, or one whose user does not want it."""
    quiet = any(environ.get(name) for name in ("NO_COLOR", "CI")) or environ.get("TERM") == "dumb"
    return quiet or not stream.isatty()


class PlainScreen:
    """One line an event, for logs and pipes; the budget every half minute.

    While the problem is loaded there are no events; a thread says what is waited for.
    """

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        loading_after_s: float = LOADING_LINE_AFTER_S,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._progress = Progress()
        self._lock = threading.Lock()
        self._last_budget_s = self._began_s = clock()
        self._loading_after_s = loading_after_s
        self._has_headings = False
        self._has_begun = threading.Event()
        """Set once the problem is loaded, and by the end."""

    def __enter__(self) -> PlainScreen:
        self._began_s = self._clock()
        threading.Thread(target=self._tell_of_loading, name="loading", daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._has_begun.set()
        self._stream.flush()

    def _tell_of_loading(self) -> None:
        wait_s = self._loading_after_s
        while not self._has_begun.wait(wait_s):
            with self._lock:
                if not self._has_begun.is_set():
                    line = loading_line(self._clock() - self._began_s)
                    print(line, file=self._stream, flush=True)
            wait_s = LOADING_LINE_EVERY_S

    def __call__(self, event: Event) -> None:
        """Print the event's line, if it has one."""
        with self._lock:
            if event.kind in ("setup", "stopped"):
                self._has_begun.set()
            self._progress.take(event)
            line = self._line(event)
            if line is not None:
                print(line, file=self._stream, flush=True)

    def _line(self, event: Event) -> str | None:
        payload, timed = event.payload, self._progress.is_timed
        match event.kind:
            case "setup":
                return setup_line(self._progress)
            case "finished":
                attempt, actions = payload["attempt"], self._progress.has_actions
                cells = wording.row(attempt, None, timed=timed, actions=actions)
                line = "attempt " + "  ".join(cells) + _why_no_code(attempt)
                if self._has_headings:
                    return line
                self._has_headings = True
                columns = wording.columns(timed=timed, actions=actions)
                return "attempt " + "  ".join(columns) + "\n" + line
            case "asking":
                return asking_line(payload["attempt"], is_new=payload.get("is_new", True))
            case "waiting":
                return waiting_text(payload["waiting"], payload.get("message"))
            case "best":
                return "best so far: " + best_text(payload["attempt"], timed=timed)
            case "final":
                return f"final check of {payload['attempt'].id}: " + wording.outcome(
                    payload["verdict"]
                )
            case "warning":
                return f"warning: {wording.plain(payload['message'], limit=WARNING_CHARACTERS)}"
            case "stopped":
                return f"stopped: {wording.plain(self._progress.stopped or '')}"
            case "budget":
                return self._budget_line()
        return None

    def _budget_line(self) -> str | None:
        now_s = self._clock()
        if now_s - self._last_budget_s < BUDGET_LINE_EVERY_S:
            return None
        self._last_budget_s = now_s
        return budget_text(self._progress)


def loading_line(waited_s: float) -> str:
    """Return one line on what is waited for before the first event."""
    return (
        f"loading the problem for {waited_s:.0f} s: its reference runs, also in float64, and on a "
        "GPU its baselines are timed; the budget begins after it, and it is given up after "
        f"{LOAD_S / 60:.0f} min"
    )


def setup_line(progress: Progress, waited_s: float = 0.0) -> str:
    """Return one line on what was loaded and where it runs, or on what is waited for so long."""
    info = progress.info
    if info is None:
        return loading_line(waited_s)
    where = str(info.environment.get("gpu") or info.device)
    line = f"loaded in {info.setup_s:.1f} s on {where}"
    if info.baselines_ms:
        times = ", ".join(f"{n} {ms:.3g} ms" for n, ms in sorted(info.baselines_ms.items()))
        return f"{line}; baselines: {times}"
    if info.device != "cuda":
        line += "; no GPU, so kernels are checked and compiled but not timed"
    return line


def _why_no_code(attempt: Attempt) -> str:
    """Return why a reply held no kernel: nothing else in its line says it."""
    verdict = attempt.verdict
    if verdict is None or verdict.status is not Status.NO_CODE or not verdict.message:
        return ""
    return f": {wording.plain(verdict.message)}"


def best_text(attempt: Attempt, *, timed: bool) -> str:
    """Return the best attempt's id and figures."""
    cells = [c for c in wording.measured(attempt, timed=timed) if c != wording.NOTHING]
    label = "" if timed else "static cost "
    return f"attempt {attempt.id}" + (f", {label}{', '.join(cells)}" if cells else "")


def asking_line(attempt: Attempt, *, is_new: bool = True) -> str:
    """Return one line on a model call that begins, or that an earlier session began."""
    told = wording.plain(attempt.action, limit=20)
    parents = ", ".join(map(str, attempt.parents))
    what = f"attempt {attempt.id}: {told}" + (f" of {parents}" if parents else "")
    return f"asking for {what}" if is_new else f"going on with the call for {what}"


def waiting_text(files: Sequence[str], message: str | None = None) -> str:
    """Return one line on what is awaited from outside; `message` counts where it is no file."""
    if not files:
        return f"waiting: {wording.plain(message or 'an answer from outside')}"
    first = wording.plain(files[0], limit=300)
    rest = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"waiting for {first}{rest}"


def budget_text(progress: Progress) -> str:
    """Return the spent budget, of its limit where there is one, and what model calls cost."""
    spent_s, limit_s = progress.spent_s, progress.limit_s
    if limit_s:
        share = min(1.0, spent_s / limit_s)
        text = f"budget {spent_s:.0f} of {limit_s:.0f} s ({share:.0%})"
    else:
        text = f"budget {spent_s:.0f} s, no limit"
    if progress.has_costs:
        text += ", " + wording.costs(tokens=progress.spent_tokens, usd=progress.spent_usd)
    calls = progress.calls_in_flight
    return f"{text}, {calls} call{'' if calls == 1 else 's'} in flight" if calls else text
