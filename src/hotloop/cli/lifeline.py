"""`python -P -m hotloop.cli.lifeline ARGS...`: the command line, for as long as stdin is open.

Whoever starts it holds the other end of a pipe. When that end closes, however its holder died, the
command is told to stop as by Ctrl-C, a second time 30 s later, and is ended 30 s after that.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence

PATIENCE_S = 30.0
"""How long a command may take to note what it has, once it is told to stop."""
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    # A shell's background jobs inherit that Ctrl-C is ignored; here it is how a run is stopped.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(
        target=_watch, args=(_take_stdin(), threading.get_ident()), daemon=True
    )
    thread.start()
    try:
        from hotloop.cli.main import main as run_command  # late: stdin is watched by now

        return run_command(argv)
    except KeyboardInterrupt:  # while the command was still being imported
        return INTERRUPTED


def _take_stdin() -> int:
    """Return stdin's pipe under another number; what the command starts reads from nowhere."""
    line = os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    return line


def _watch(line: int, main_thread: int) -> None:
    while os.read(line, 4096):
        pass
    for _ in range(2):
        signal.pthread_kill(main_thread, signal.SIGINT)
        time.sleep(PATIENCE_S)
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
