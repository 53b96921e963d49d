"""`python -m benchmarks.attention_child PID COMMAND...`: a command that ends with its starter.

A benchmark that was killed would else leave a search and its judge on the GPU that the next
benchmark wants to time on. The kernel signals this process when the thread that started it is gone,
however it went; this process then ends the command with all that it started, sessions of their own
included. Ctrl-C is passed on, so that the command drains.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from hotloop.sandbox import kernel
from hotloop.sandbox.processes import kill_tree

ORPHANED = 1
KILLED = 128
"""Plus the signal, as a shell tells it: the exit code of a command that was killed."""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    starter, *command = argv
    _die_with(int(starter), signal.SIGTERM)
    own_pid = os.getpid()
    process = subprocess.Popen(
        command,
        preexec_fn=lambda: _die_with(own_pid, signal.SIGKILL),  # noqa: PLW1509  one thread here
    )

    def end_all(signum: int, frame: FrameType | None) -> None:
        kill_tree(process.pid)
        os._exit(ORPHANED)

    def pass_on(signum: int, frame: FrameType | None) -> None:
        process.send_signal(signum)

    signal.signal(signal.SIGTERM, end_all)
    signal.signal(signal.SIGINT, pass_on)
    code = process.wait()
    return code if code >= 0 else KILLED - code


def _die_with(parent: int, signum: int) -> None:
    """Have the kernel send this process a signal when `parent`, which started it, is gone."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os._exit(ORPHANED)  # it died before the kernel knew; nobody is left to tell


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
