"""What a person sees while a suite goes on: a live table, or plain lines.

Both write to stderr only. The live one needs a terminal; with NO_COLOR, CI, a dumb terminal or a
pipe there is a line for each problem that ends and for each warning.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TextIO

from hotloop.cli import bench_text, wording
from hotloop.cli.screen import LOADING_LINE_EVERY_S, is_plain
from hotloop.cli.suite_progress import SuiteProgress
from hotloop.core.event import Event, Listener
from hotloop.engine import RunResult
from hotloop.errors import HotloopError
from hotloop.plan import SearchPlan
from hotloop.suite.planning import Job, trouble_of
from hotloop.suite.standing import State, read_standing
from hotloop.verify.local import LOAD_S

LINE_CHARACTERS = 300
WHAT_TAKES_SO_LONG = (
    "its reference runs, also in float64, after those that have their turn before it; smaller "
    f"sizes (--set) load sooner, and loading is given up after {LOAD_S / 60:.0f} min"
)
Search = Callable[..., RunResult]
"""What runs one plan: `api.run_plan`, or takes what it takes."""


class SuiteScreen(Protocol):
    """Shows a suite while it is open; safe to call from any thread."""

    def begin(self, name: str, limit_s: float | None = None) -> None:
        """Take note that a problem is being worked on, under so many seconds of budget."""

    def take(self, name: str, event: Event) -> None:
        """Take in an event of its run."""

    def end(self, name: str, state: str, words: str) -> None:
        """Take note of where it stands now."""

    def say(self, name: str, line: str) -> None:
        """Show a line on a problem."""

    def __enter__(self) -> SuiteScreen:
        """Start showing."""

    def __exit__(self, *exc: object) -> None:
        """Stop showing and leave the terminal as it was."""


class PlainSuite:
    """One line for what matters; while a problem is loaded, a thread says so now and then."""

    def __init__(self, stream: TextIO, loading_every_s: float = LOADING_LINE_EVERY_S) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._loading_every_s = loading_every_s
        self._loaded: dict[str, threading.Event] = {}
        """Of each problem that began: set once it is loaded, and by its end."""

    def __enter__(self) -> PlainSuite:
        return self

    def __exit__(self, *exc: object) -> None:
        for loaded in self._loaded.values():
            loaded.set()
        self._stream.flush()

    def begin(self, name: str, limit_s: float | None = None) -> None:
        """Print that it begins: loading alone may take minutes."""
        told = "" if limit_s is None else f" under a budget of {limit_s:g} s"
        self.say(name, f"begun: loading the reference, then the search{told}")
        loaded = self._loaded[name] = threading.Event()
        threading.Thread(
            target=self._tell_of_loading, args=(name, loaded), name="loading", daemon=True
        ).start()

    def take(self, name: str, event: Event) -> None:
        """Note that it is loaded: with many runs at a time, each one's events would be noise."""
        if event.kind in ("setup", "stopped") and name in self._loaded:
            self._loaded[name].set()

    def end(self, name: str, state: str, words: str) -> None:
        """Print what came of a problem, where there is more to say than that it raised."""
        if name in self._loaded:
            self._loaded[name].set()
        if words:
            self.say(name, words)

    def _tell_of_loading(self, name: str, loaded: threading.Event) -> None:
        began_s = time.monotonic()
        while not loaded.wait(self._loading_every_s):
            waited_s = time.monotonic() - began_s
            with self._lock:
                if not loaded.is_set():
                    self._print(name, f"not loaded after {waited_s:.0f} s; {WHAT_TAKES_SO_LONG}")

    def say(self, name: str, line: str) -> None:
        """Print a line."""
        with self._lock:
            self._print(name, line)

    def _print(self, name: str, line: str) -> None:
        told = f"{name}: {wording.plain(line, limit=LINE_CHARACTERS)}"
        print(told, file=self._stream, flush=True)


def open_suite_screen(
    stream: TextIO,
    environ: Mapping[str, str],
    names: Sequence[str],
    known: Callable[[], Mapping[str, str]],
) -> SuiteScreen:
    """Return the screen that suits the stream.

    Args:
        stream: where it is drawn.
        environ: says whether colours and redrawing are wanted.
        names: the problems, in the order of the suite.
        known: where problems stand before anything begins; asked for a live screen only.
    """
    if is_plain(stream, environ):
        return PlainSuite(stream)
    from hotloop.cli.suite_live import LiveSuite  # rich is only loaded where it is shown

    return LiveSuite(stream, SuiteProgress.of(names, known()))


def shown_search(search: Search, jobs: Sequence[Job], screen: SuiteScreen) -> Search:
    """Return a search that shows each run on the screen.

    Args:
        search: what runs a plan.
        jobs: the problems that can be run.
        screen: open while it is called.
    """
    members = {job.plan.folder: job.member for job in jobs}

    def run(plan: SearchPlan, *, listen: Listener, **options: Any) -> RunResult:
        member = members[plan.folder]

        def hear(event: Event) -> None:
            screen.take(member.name, event)
            listen(event)

        screen.begin(member.name, plan.spec.budget.wall_s)
        try:
            result = search(plan, listen=hear, **options)
        except HotloopError as error:
            state = State.SKIPPED if trouble_of(error).skipped else State.FAILED
            screen.end(member.name, state.value, "")  # the suite says why
            raise
        except BaseException:
            screen.end(member.name, State.FAILED.value, "")
            raise
        row = read_standing(plan.folder, member, None)
        screen.end(member.name, row.state.value, bench_text.row_words(row))
        return result

    return run
