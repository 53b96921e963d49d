"""`hotloop mcp`: hotloop as tools of a coding agent, over stdin and stdout."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from hotloop import api
from hotloop.cli import options, run_text
from hotloop.errors import ConfigError
from hotloop.verify import find_device

_INSTALL = "the mcp package is not installed; pip install 'hotloop[mcp]'"


def mcp(
    root: Annotated[
        Path, typer.Option(metavar="FOLDER", help="What the agent may name files in.")
    ] = Path(),
    device: options.Device = "auto",
    data: options.Data = None,
    min_isolation: options.MinIsolation = None,
    idle: Annotated[
        float, typer.Option(metavar="SECONDS", help="Without a call, the judge ends after so long.")
    ] = 600.0,
) -> None:
    """Serve hotloop's tools to a coding agent (Model Context Protocol on stdin and stdout)."""
    try:
        import mcp.server  # noqa: F401  found here, so that everything else works without it
    except ModuleNotFoundError as exc:
        raise ConfigError(_INSTALL) from exc
    from hotloop.agent.jobs import Jobs
    from hotloop.agent.runs import AgentRuns
    from hotloop.agent.server import Desk, make_server
    from hotloop.agent.workspace import Workspace
    from hotloop.warm.judge import WarmJudge, local_judge

    if idle <= 0:
        raise ConfigError(f"--idle: expected seconds above 0, got {idle:g}")
    where = find_device(device)
    workspace = Workspace(root, device=where, data=None if data is None else os.fspath(data))
    desk = Desk(
        workspace=workspace,
        judge=WarmJudge(local_judge(where, min_isolation or api.DEFAULT_ISOLATION), idle_s=idle),
        jobs=Jobs(),
        runs=AgentRuns(workspace),
        run_table=run_text.run_table,
        find_attempt=run_text.find_attempt,
    )
    signal.signal(signal.SIGTERM, _end)
    try:
        make_server(desk).run("stdio")
    finally:
        desk.close()


def _end(number: int, frame: object) -> None:
    """End as when the agent closes stdin: runs are told to stop, the judge is closed."""
    sys.exit(128 + number)
