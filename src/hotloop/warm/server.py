"""`python -m hotloop.warm.server`: one judge that serves the commands of one user, one at a time.

It listens on a socket in a folder that only its user can enter, and ends when nobody has called for
`--idle` seconds.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Tier
from hotloop.errors import HotloopError, InfraError, WorkerDied
from hotloop.verify import LocalVerifier
from hotloop.warm import wire
from hotloop.warm.judge import WarmJudge

PATIENCE_S = 30.0
"""A client that connects and says nothing for so long is hung up on."""


def main(argv: list[str] | None = None) -> int:
    """Serve until nobody calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--min-isolation", required=True)
    parser.add_argument("--idle", type=float, required=True, help="seconds")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))

    def open_judge() -> LocalVerifier:
        return LocalVerifier(args.device, min_isolation=args.min_isolation)

    open_judge().close()  # a cage that this machine cannot give is told before anybody connects
    serve(args.socket, open_judge, idle_s=args.idle)
    return 0


class _Seat:
    """The judge that is open, so that a request can choose between its final tiers."""

    def __init__(self, open_judge: Callable[[], Any]) -> None:
        self._open = open_judge
        self.judge: Any = None

    def __call__(self) -> Any:
        self.judge = self._open()
        return self.judge


def serve(path: Path, open_judge: Callable[[], Any], *, idle_s: float) -> None:
    """Answer on a socket until nobody has called for `idle_s`; then close the judge.

    Args:
        path: of the socket; replaced if a dead server left it.
        open_judge: makes a `Verifier` with `short_final`; called again after one that failed.
        idle_s: seconds.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    seat = _Seat(open_judge)
    judge = WarmJudge(seat, idle_s=2 * idle_s)  # this loop is the clock
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(temporary))
        listener.listen(8)
        os.replace(temporary, path)  # whoever sees it can connect
        inode = path.stat().st_ino
        listener.settimeout(idle_s)
        try:
            while True:
                connection, _ = listener.accept()
                with connection:
                    _answer(connection, judge, seat)
        except TimeoutError:
            return
        finally:
            if path.exists() and path.stat().st_ino == inode:  # not a successor's
                path.unlink()
            judge.close()


def _answer(connection: socket.socket, judge: WarmJudge, seat: _Seat) -> None:
    connection.settimeout(PATIENCE_S)
    try:
        request = wire.receive(connection)
        problem = from_json(Problem, request["problem"])
        candidate = from_json(Candidate, request["candidate"])
        tier = Tier(request["tier"])
        is_short = bool(request["short"])
    except (WorkerDied, KeyError, TypeError, ValueError):
        return  # no command of ours says that
    try:
        info = judge.load(problem)
        seat.judge.short_final = is_short
        if not _sent(connection, {"info": to_json(info)}):
            return
        reply: dict[str, Any] = {"verdict": to_json(judge.verify(problem, candidate, tier))}
    except HotloopError as error:
        reply = wire.error_record(error)
    except OSError as error:  # the judge's log, or its folders
        reply = wire.error_record(InfraError(f"the warm judge: {error}; leave out --warm"))
    _sent(connection, reply)


def _sent(connection: socket.socket, record: dict[str, Any]) -> bool:
    try:
        wire.send(connection, record)
    except OSError:  # who asked is gone
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(main())
