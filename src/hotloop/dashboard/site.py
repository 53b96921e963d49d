"""The served folder: what is listed in it, what was read of it, and what pages are made with."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from hotloop import __version__
from hotloop.core.command_line import quoted
from hotloop.dashboard.listing import Listing, Place, scan
from hotloop.dashboard.shelf import Shelf
from hotloop.dashboard.state import RunState, read_state, writer_lives
from hotloop.dashboard.suite_state import (
    ReadsProblem,
    SuiteState,
    suite_reader,
    suite_signature,
)
from hotloop.dashboard.tail import signature
from hotloop.dashboard.trouble import not_found
from hotloop.report import display
from hotloop.report import tables as report_tables
from hotloop.store.lock import last_words

_HERE = Path(__file__).parent
_REPORT = _HERE.parent / "report" / "templates"
_SHARED = "report_parts.html.jinja"
"""What pages take from the report."""
LISTED_FOR_S = 1.0
"""A listing is made anew after so long."""


class Site:
    """One served folder. Safe to use from many threads."""

    def __init__(self, root: Path, read_problem: ReadsProblem) -> None:
        """Serve `root`; `read_problem` reads one problem of a suite."""
        self.root = root
        self.runs: Shelf[RunState] = Shelf(read_state)
        self.suites: Shelf[SuiteState] = Shelf(suite_reader(read_problem), suite_signature)
        self._templates = _environment()
        # Compiled now, so that nobody's first page waits for it.
        for name in (_SHARED, *(path.name for path in (_HERE / "templates").glob("*.jinja"))):
            self._templates.get_template(name)
        self._mutex = threading.Lock()
        self._listing: tuple[float, Listing] | None = None

    def close(self) -> None:
        """Give up what is being read."""
        self.runs.close()
        self.suites.close()

    def listing(self) -> Listing:
        """Return what lies below the folder, as of a second ago at most."""
        with self._mutex:
            now = time.monotonic()
            if self._listing is None or now - self._listing[0] > LISTED_FOR_S:
                self._listing = now, scan(self.root)
            return self._listing[1]

    def run(self, run_id: str) -> Place:
        """Return the run with this id.

        Raises:
            PageTrouble: there is none.
        """
        return self._find(run_id, is_suite=False)

    def suite(self, suite_id: str) -> Place:
        """Return the suite with this id.

        Raises:
            PageTrouble: there is none.
        """
        return self._find(suite_id, is_suite=True)

    def _find(self, place_id: str, *, is_suite: bool) -> Place:
        place = self.listing().find(place_id, is_suite=is_suite)
        if place is None:  # it may have begun within the last second
            with self._mutex:
                self._listing = None
            place = self.listing().find(place_id, is_suite=is_suite)
        if place is None:
            raise not_found("such suite" if is_suite else "such run")
        return place

    def run_stand(self, place: Place) -> str:
        """Return text that changes when the pages of a run may."""
        folder = place.folder
        return f"{signature(folder)} {writer_lives(folder)} {last_words(folder)}"

    def suite_stand(self, place: Place) -> str:
        """Return text that changes when the page of a suite may."""
        return f"{suite_signature(place.folder)} {self.suites.has_read(place.folder)}"

    def list_stand(self) -> str:
        """Return text that changes when the list may."""
        listing = self.listing()
        runs = (f"{p.id} {self.run_stand(p)} {self.runs.has_read(p.folder)}" for p in listing.runs)
        suites = (f"{p.id} {self.suite_stand(p)}" for p in listing.suites)
        return "\n".join([*runs, *suites])

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        """Return a page."""
        shared = {
            "root": self.root,
            "start_command": quoted(
                ["hotloop", "optimize", "PROBLEM", "--out", self.root / "NAME"]
            ),
            "version": __version__,
            "not_measured": display.NOT_MEASURED,
        }
        return self._templates.get_template(template).render({**shared, **values})


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_HERE / "templates", _REPORT]),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["line"] = display.one_line
    environment.filters["seen"] = display.visible
    environment.filters["seconds"] = display.seconds
    environment.tests["link"] = lambda cell: isinstance(cell, report_tables.Link)
    return environment
