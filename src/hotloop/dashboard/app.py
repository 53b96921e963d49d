"""The application: addresses, pages, and what is told when a page cannot be shown."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hotloop.dashboard.attempt_table import Filters
from hotloop.dashboard.gate import Admission, Gate
from hotloop.dashboard.page_attempt import attempt_page
from hotloop.dashboard.page_compare import compare_page
from hotloop.dashboard.page_list import list_page
from hotloop.dashboard.page_run import run_page
from hotloop.dashboard.page_suite import SuiteFilters, suite_page
from hotloop.dashboard.site import Site
from hotloop.dashboard.stream import Streams, mark
from hotloop.dashboard.suite_state import ReadsProblem
from hotloop.dashboard.trouble import PageTrouble
from hotloop.report import display
from hotloop.report.html import PLOT_STYLE, asset

_STATIC = Path(__file__).parent / "static"
_TYPES = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""Everything that is sent besides pages."""
Page = tuple[str, Mapping[str, Any]]
Follow = tuple[str, Callable[[], str]]
"""Where a page hears of news, and what changes when there are some."""


class Dashboard:
    """The served folder as an ASGI application."""

    def __init__(self, root: Path, admission: Admission, read_problem: ReadsProblem) -> None:
        """Serve the runs and suites below `root`; `read_problem` reads one problem of a suite."""
        self.site = Site(root, read_problem)
        self.streams = Streams()
        files = {name: (_STATIC / name).read_bytes() for name in _TYPES}
        files["dashboard.css"] += asset(PLOT_STYLE).encode()
        self._static = {name: (data, _etag(data)) for name, data in files.items()}
        app = Starlette(
            routes=[
                Route("/", self._list),
                Route("/run/{run_id}", self._run),
                Route("/run/{run_id}/attempt/{number:int}", self._attempt),
                Route("/suite/{suite_id}", self._suite),
                Route("/compare", self._compare),
                Route("/events", self._events),
                Route("/static/{name}", self._asset),
            ],
            exception_handlers={HTTPException: self._refuse},
            lifespan=self._life,
        )
        app.router.redirect_slashes = False  # an address is one of these or none
        self.app: ASGIApp = Gate(app, admission)

    @asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        yield
        self.streams.end()
        self.site.close()

    async def _list(self, request: Request) -> Response:
        return await self._page(
            request, lambda: list_page(self.site), lambda: ("page=list", self.site.list_stand)
        )

    async def _run(self, request: Request) -> Response:
        run_id = request.path_params["run_id"]
        filters = Filters.from_query(request.query_params)
        return await self._page(
            request,
            lambda: run_page(self.site, self.site.run(run_id), filters),
            lambda: self._follow_runs(run_id),
        )

    async def _attempt(self, request: Request) -> Response:
        run_id, number = request.path_params["run_id"], request.path_params["number"]
        return await self._page(
            request,
            lambda: attempt_page(self.site, self.site.run(run_id), min(number, 1 << 62)),
            lambda: self._follow_runs(run_id),
        )

    async def _suite(self, request: Request) -> Response:
        suite_id = request.path_params["suite_id"]
        filters = SuiteFilters.from_query(request.query_params)
        return await self._page(
            request,
            lambda: suite_page(self.site, self.site.suite(suite_id), filters),
            lambda: self._follow_suite(suite_id),
        )

    async def _compare(self, request: Request) -> Response:
        ids = request.query_params.get("a", ""), request.query_params.get("b", "")
        return await self._page(
            request,
            lambda: compare_page(self.site, ids),
            lambda: self._follow_runs(*ids) if all(ids) else ("page=list", self.site.list_stand),
        )

    def _follow_runs(self, *run_ids: str) -> Follow:
        places = [self.site.run(run_id) for run_id in run_ids]
        query = "&".join(f"run={place.id}" for place in places)
        return query, lambda: "\n".join(self.site.run_stand(place) for place in places)

    def _follow_suite(self, suite_id: str) -> Follow:
        place = self.site.suite(suite_id)
        return f"suite={place.id}", lambda: self.site.suite_stand(place)

    async def _page(
        self, request: Request, build: Callable[[], Page], follow: Callable[[], Follow]
    ) -> Response:
        return await run_in_threadpool(self._built, request.url.path, build, follow)

    def _built(
        self, path: str, build: Callable[[], Page], follow: Callable[[], Follow]
    ) -> Response:
        try:
            query, stand = follow()
            seen = mark(stand())  # before the page is made, so that no news is missed
            template, values = build()
            live = {"events": f"/events?{query}", "seen": seen}
            return HTMLResponse(self.site.render(template, {**live, **values}))
        except PageTrouble as trouble:
            return self._trouble(trouble)
        except Exception as exc:  # noqa: BLE001  a page that fails is one line, here and there
            told = display.one_line(f"{type(exc).__name__}: {exc}", limit=300)
            print(f"hotloop: {display.one_line(path)}: {told}", file=sys.stderr, flush=True)
            message = f"this page cannot be shown ({told}); the other pages are as they were"
            return self._trouble(PageTrouble(500, "Cannot be shown", message))

    def _trouble(self, trouble: PageTrouble) -> Response:
        values = {"title": trouble.title, "message": trouble.message, "events": "", "seen": ""}
        html = self.site.render("trouble.html.jinja", values)
        return HTMLResponse(html, status_code=trouble.status)

    async def _events(self, request: Request) -> Response:
        query = request.query_params
        try:
            if "suite" in query:
                _, stand = self._follow_suite(query["suite"])
            elif "run" in query:
                _, stand = self._follow_runs(*query.getlist("run")[:2])
            else:
                stand = self.site.list_stand
        except PageTrouble as trouble:
            return self._trouble(trouble)
        return self.streams.answer(request, stand)

    async def _asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._static:
            raise HTTPException(404)
        data, etag = self._static[name]
        headers = {"ETag": etag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=_TYPES[name], headers=headers)

    async def _refuse(self, request: Request, exc: Exception) -> Response:
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        message = "there is no such page; go to the list of runs"
        return self._trouble(PageTrouble(status, "Not here", message))


def _etag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:16]}"'
