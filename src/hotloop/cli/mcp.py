"""`hotloop mcp`: hotloop as tools of a coding agent, over stdin and stdout."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from hotloop import api
from hotloop.agent.final_looks import DEFAULT_LOOKS, FinalLooks
from hotloop.cli import options, run_text
from hotloop.errors import ConfigError
from hotloop.llm.spec import SpecKind, parse_spec
from hotloop.problems.hub import is_hub
from hotloop.verify import find_device

_INSTALL = "the mcp package is not installed; pip install 'hotloop[mcp]'"


def mcp(
    root: Annotated[
        Path, typer.Option(metavar="FOLDER", help="What the agent may name files in.")
    ] = Path(),
    device: options.Device = "auto",
    data: options.Data = None,
    min_isolation: options.MinIsolation = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="A model at an endpoint, PRESET:NAME[@URL], that the agent's runs may use; "
            "repeatable. [default: none]",
        ),
    ] = None,
    final_looks: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, help="Final verdicts of a problem: each looks at held-out data."
        ),
    ] = DEFAULT_LOOKS,
    idle: Annotated[
        float, typer.Option(metavar="SECONDS", help="Without a call, the judge ends after so long.")
    ] = 600.0,
) -> None:
    """Serve hotloop's tools to a coding agent (Model Context Protocol on stdin and stdout)."""
    try:
        import mcp.server  # noqa: F401  found here, so that everything else works without it
    except ModuleNotFoundError as exc:
        raise ConfigError(_INSTALL) from exc
    from hotloop.agent.desk import Desk
    from hotloop.agent.jobs import Jobs
    from hotloop.agent.runs import AgentRuns
    from hotloop.agent.server import make_server
    from hotloop.agent.workspace import Workspace
    from hotloop.warm.judge import WarmJudge, local_judge

    if idle <= 0:
        raise ConfigError(f"--idle: expected seconds above 0, got {idle:g}")
    models = _checked(model or ())
    where = find_device(device)
    workspace = Workspace(root, device=where, data=_absolute(data))
    judge = WarmJudge(local_judge(where, min_isolation or api.DEFAULT_ISOLATION), idle_s=idle)
    desk = Desk(
        workspace=workspace,
        judge=judge,
        jobs=Jobs(judge.abandon),
        runs=AgentRuns(workspace),
        looks=FinalLooks(_state_folder(), workspace.root, limit=final_looks),
        run_table=run_text.run_table,
        find_attempt=run_text.find_attempt,
        models=models,
    )
    with _ending_on_signals(desk.runs.close):
        try:
            make_server(desk).run("stdio")
        finally:
            desk.close()


def _state_folder() -> Path:
    """Return where what must outlive a server is kept: outside of any workspace."""
    base = os.environ.get("XDG_STATE_HOME", "")
    home = Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state"
    return home / "hotloop" / "final-verdicts"


def _checked(models: Sequence[str]) -> tuple[str, ...]:
    for spec in models:
        if parse_spec(spec).kind is not SpecKind.ENDPOINT:
            raise ConfigError(f"--model {spec}: expected PRESET:NAME[@URL]")
    return tuple(models)


def _absolute(data: Path | None) -> str | None:
    """Return a data set as runs find it, whose folder is another."""
    if data is None or is_hub(os.fspath(data)):
        return None if data is None else os.fspath(data)
    return os.fspath(data.absolute())


@contextmanager
def _ending_on_signals(stop_runs: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C stop the runs and end this process, also while stdin is open.

    The SDK's thread waits for stdin and cannot be told to end. What the judge's process was doing
    is lost; it ends with its pipes.
    """

    def end(number: int) -> None:
        try:
            stop_runs()
        finally:
            os._exit(128 + number)

    def handle(number: int, frame: FrameType | None) -> None:
        # In a thread: the interrupted code may hold a lock that stopping needs.
        threading.Thread(target=end, args=(number,), daemon=True).start()

    numbers = (signal.SIGTERM, signal.SIGINT)
    former = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
