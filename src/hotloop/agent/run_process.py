"""The process of an agent's run: a command line that ends with the server.

Its folder is the workspace, which an agent may write to, and it may hold API keys: nothing of the
workspace is on its module path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

PROGRAM = (sys.executable, "-P", "-m", "hotloop.cli.lifeline")
"""The command line that ends when nobody holds the other end of its stdin any more."""


def launch(words: Sequence[str], *, folder: Path, log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a program in a folder; it lives no longer than its `stdin` is held open.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(
        words,
        cwd=folder,
        env=safe_environment(os.environ),
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a Ctrl-C at the agent is not for the run
    )


def safe_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Python, and what it starts, imports nothing by its folder."""
    kept = dict(environ) | {"PYTHONSAFEPATH": "1"}
    # An empty or relative entry would mean the new process' folder.
    entries = [os.path.abspath(p) for p in kept.pop("PYTHONPATH", "").split(os.pathsep) if p]
    return kept | ({"PYTHONPATH": os.pathsep.join(entries)} if entries else {})


def release(process: subprocess.Popen[bytes]) -> None:
    """Let go of an ended process' stdin."""
    if process.stdin is not None:
        process.stdin.close()
