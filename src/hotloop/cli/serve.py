"""`hotloop serve`: runs and suites below a folder, live in a browser."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli import options
from hotloop.cli.output import Output
from hotloop.cli.report_problem import read_problem
from hotloop.errors import ConfigError, ToolMissing

if TYPE_CHECKING:
    from hotloop.dashboard.app import Dashboard

DEFAULT_PORT = 8765
_EVERYWHERE = ("0.0.0.0", "::")


def serve(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder with runs or suites below it.")
    ],
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = (
        DEFAULT_PORT
    ),
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but this machine's own asks for a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            envvar="HOTLOOP_SERVE_TOKEN",
            help="What a browser must show once, as ?token=. [default: none here, a random one "
            "elsewhere]",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show runs and suites in a browser, live. Reads journals only; ends with Ctrl-C."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is no folder; give one that has runs or suites below it")
    try:
        from hotloop.dashboard import gate, server  # starlette and uvicorn are an extra
    except ModuleNotFoundError as exc:
        raise ToolMissing(
            f"hotloop serve needs the package {exc.name}; pip install 'hotloop[serve]'"
        ) from exc
    if token is None and not gate.is_loopback(host):
        token = secrets.token_urlsafe(32)
    if token is not None and len(token) < gate.LEAST_TOKEN:
        raise ConfigError(
            f"--token: expected at least {gate.LEAST_TOKEN} characters, got {len(token)}; leave "
            "it out for a random one"
        )
    dashboard = make_dashboard(folder, host=host, token=token)
    listener = server.bind(host, port)
    name = socket.gethostname() if host in _EVERYWHERE else host
    shown = f"[{name}]" if ":" in name else name
    url = f"http://{shown}:{listener.getsockname()[1]}/"
    url += f"?token={token}" if token is not None else ""
    text = f"dashboard of {folder}: {url} (Ctrl-C ends it)"
    Output(as_json=json).result({"folder": str(folder), "url": url}, text)
    server.run(dashboard, listener)


def make_dashboard(folder: Path, *, host: str = "127.0.0.1", token: str | None = None) -> Dashboard:
    """Return the dashboard of a folder, to be served at an address."""
    from hotloop.dashboard.app import Dashboard  # as above
    from hotloop.dashboard.gate import Admission

    admission = Admission(host=host, token=token)
    return Dashboard(folder.resolve(), admission, read_problem)
