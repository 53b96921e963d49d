"""Run a tool of the CUDA toolkit on a process of ours, with a deadline; read what it wrote.

The tool writes a log of its own; the process that it watches prints elsewhere, so that nothing that
a candidate's kernels print can be taken for the tool's words. Whatever the tool started ends with
it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hotloop import sandbox

KILL_S = 5.0
MAX_LOG_BYTES = 4 << 20
MAX_LINE_BYTES = 4096


def run_watched(
    command: Sequence[str], folder: Path, env: Mapping[str, str], timeout_s: float, *, output: str
) -> int | None:
    """Run a command with everything below it.

    Args:
        command: the tool, its options, and the process to watch.
        folder: private to the judge; the working folder, home and temporary folder.
        env: the environment of the watched process.
        timeout_s: after this, all is killed.
        output: file in the folder for what is printed; written anew.

    Returns:
        The exit code, negative for a signal; None where it did not end in time.

    Raises:
        OSError: the folder cannot be written or the tool cannot be started.
    """
    own = {"TMPDIR": str(folder), "HOME": str(folder)}
    if os.environ.get("PYTHONPATH"):
        own["PYTHONPATH"] = os.environ["PYTHONPATH"]
    (folder / output).unlink(missing_ok=True)
    with (folder / output).open("wb") as sink:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**env, **own},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return process.wait(timeout=max(0.1, timeout_s))
    except subprocess.TimeoutExpired:
        return None
    finally:
        sandbox.kill_tree(process.pid, timeout_s=KILL_S)
        with suppress(subprocess.TimeoutExpired):  # a process inside a driver can outlast a signal
            process.wait(timeout=KILL_S)


def read_start(path: Path) -> str:
    """Return the first `MAX_LOG_BYTES` of a text; nothing where there is no such file."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return file.read(MAX_LOG_BYTES).decode("utf-8", "replace")


def read_last_line(path: Path) -> str:
    """Return the last line of a text: the watched process's own words, if it came so far."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MAX_LINE_BYTES))
        lines = file.read().decode("utf-8", "replace").strip().split("\n")
    return lines[-1].strip()
