"""`python -m hotloop.warm.server`: one judge that serves the commands of one user, one at a time.

It listens on a socket in a folder that only its user can enter, and ends when nobody has called for
`--idle` seconds. Whoever waits for an answer hears once a second that it is there (`line.py`).
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
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
from hotloop.warm.line import Line
from hotloop.warm.watch import JudgeSilent


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
        self._judge: Any = None
        self._is_short = False

    def __call__(self) -> Any:
        self._judge = self._open()
        self._judge.short_final = self._is_short
        return self._judge

    def choose(self, *, is_short: bool) -> None:
        """Choose for the judge that is open, and for one that has to take its place."""
        self._is_short = is_short
        if self._judge is not None:
            self._judge.short_final = is_short


class _Visits:
    """Whoever is being answered, one at a time; each in a thread, so that all hear from us."""

    def __init__(self, open_judge: Callable[[], Any], idle_s: float) -> None:
        self._seat = _Seat(open_judge)
        self._judge = WarmJudge(self._seat, idle_s=2 * idle_s)  # the listener is the clock
        self._idle_s = idle_s
        self._turn = threading.Lock()
        self._count = threading.Lock()
        self._open = 0
        self._quiet_since_s = time.monotonic()

    def left_s(self) -> float:
        """Return for how many seconds nobody more needs to call until it is over."""
        with self._count:
            if self._open:
                return self._idle_s
            return self._quiet_since_s + self._idle_s - time.monotonic()

    def begin(self, connection: socket.socket) -> None:
        """Answer a connection, and close it."""
        with self._count:
            self._open += 1
        threading.Thread(target=self._visit, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """End the judge, also under one who waits for it."""
        if self._open:
            self._judge.abandon()
        self._judge.close()

    def _visit(self, connection: socket.socket) -> None:
        try:
            with Line(connection) as line:
                self._answer(line)
        finally:
            with self._count:
                self._open -= 1
                self._quiet_since_s = time.monotonic()

    def _answer(self, line: Line) -> None:
        try:
            request = line.receive()
            problem = from_json(Problem, request["problem"])
            candidate = from_json(Candidate, request["candidate"])
            tier = Tier(request["tier"])
            is_short = bool(request["short"])
        except (WorkerDied, KeyError, TypeError, ValueError):
            return  # no command of ours says that
        with self._turn:
            if line.is_gone:
                return
            line.send(self._reply(line, problem, (candidate, tier, is_short)))

    def _reply(
        self, line: Line, problem: Problem, asked: tuple[Candidate, Tier, bool]
    ) -> dict[str, Any]:
        candidate, tier, is_short = asked
        try:
            self._seat.choose(is_short=is_short)
            info = self._judge.load(problem)
            if not line.send({"info": to_json(info)}):
                return {}
            return {"verdict": to_json(self._judge.verify(problem, candidate, tier))}
        except JudgeSilent as silent:
            return {wire.SILENT: str(silent)}
        except HotloopError as error:
            return dict(wire.error_record(error))
        except OSError as error:  # the judge's log, or its folders
            return dict(wire.error_record(InfraError(f"the warm judge: {error}; leave out --warm")))


def serve(path: Path, open_judge: Callable[[], Any], *, idle_s: float) -> None:
    """Answer on a socket until nobody has called for `idle_s`; then close the judge.

    Args:
        path: of the socket; replaced if a dead server left it.
        open_judge: makes a `Verifier` with `short_final`; called again after one that failed.
        idle_s: seconds.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    visits = _Visits(open_judge, idle_s)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(temporary))
        listener.listen(8)
        os.replace(temporary, path)  # whoever sees it can connect
        inode = path.stat().st_ino
        try:
            while (left_s := visits.left_s()) > 0:
                listener.settimeout(left_s)
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                visits.begin(connection)
        finally:
            if path.exists() and path.stat().st_ino == inode:  # not a successor's
                path.unlink()
            visits.close()


if __name__ == "__main__":
    raise SystemExit(main())
