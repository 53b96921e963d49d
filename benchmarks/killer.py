"""Strikes runs at random moments and compares what they come to with one that nothing happened to.

A round starts a small search with a paid endpoint (a local server) and a judge in processes of its
own, and strikes it: kills the coordinator, the judge or a candidate, or stops one of the first two
for a moment or for good. Whoever dies, the same command is given again until the run has ended. A
call that two kills cut off is given up, so that it is not paid a third time, and a candidate whose
judge is hit three times is set apart: such a round ends otherwise and is counted apart.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.fake_machine import Command, FakeMachine
from benchmarks.fake_run import DigestServer, Journal, command, journal_of
from hotloop.errors import ForeignRun
from hotloop.sandbox.processes import Process, process_table
from hotloop.store.reader import RunReader

JUDGE_S = 0.05
HEARTBEAT_S = 0.1
"""A judge that is stopped for good is given up after six times as long."""
PAUSE_S = 0.3
MAX_BLOWS = 3
"""A round is struck one to this many times."""
FIND_S = 2.0
"""How long a blow waits for its victim: a candidate lives for moments."""
HUNG_S = 120.0
"""A run of some seconds that is not over by then never is."""

SHOWN = 300
"""Characters of an event that only one of a run and the control run has."""

COORDINATOR = "coordinator killed"
JUDGE = "judge killed"
CANDIDATE = "candidate killed"
JUDGE_STOPPED = "judge stopped"
JUDGE_PAUSED = "judge paused"
COORDINATOR_PAUSED = "coordinator paused"
BLOWS = (
    COORDINATOR,
    COORDINATOR,
    JUDGE,
    CANDIDATE,
    JUDGE_STOPPED,
    JUDGE_PAUSED,
    COORDINATOR_PAUSED,
)

Row = dict[str, Any]
Blow = tuple[float, str]
"""Seconds after the one before it, and what is done."""


class Killer:
    """Runs rounds against one control run; the seed fixes which blows fall, and when."""

    def __init__(self, machine: FakeMachine, server: DigestServer, parent: Path) -> None:
        self._machine = machine
        self._server = server
        self._parent = parent
        done = self._run(self._folder("control"), [])
        if done != 0:
            raise SystemExit(f"expected the control run to end with 0, got {done}")
        self.paid = len(server.asked)
        self.control: Journal = journal_of(parent / "control" / "run")
        began_s = time.monotonic()
        self._run(self._folder("timed"), [])
        self.control_s = time.monotonic() - began_s
        """How long a run takes that nothing happens to; blows fall within it."""
        self._struck: Counter[str] = Counter()

    def round(self, number: int, seed: int) -> Row:
        """Strike, resume, compare; return what was found."""
        draws = random.Random(f"{seed}/{number}")
        folder = self._folder(f"round-{number}")
        paid_before = len(self._server.asked)
        self._struck = Counter()
        row: Row = {"round": number, "lost": 0, "refused": 0, "hung": 0}
        seen: list[Any] = []
        blows = [
            (draws.uniform(0.0, self.control_s / MAX_BLOWS), draws.choice(BLOWS))
            for _ in range(draws.randint(1, MAX_BLOWS))
        ]
        while blows:
            status = self._run(folder, blows)
            row["hung"] += status is None
            row["refused"] += status not in (0, None, -signal.SIGKILL)
            seen, before = _events(folder / "run"), seen
            row["lost"] += seen[: len(before)] != before
            if status == 0:
                break
        row["exit"] = self._run(folder, [])
        row["lost"] += _events(folder / "run")[: len(seen)] != seen
        found = journal_of(folder / "run")
        row["blows"] = dict(self._struck)
        row["events_at_last_blow"] = len(seen)
        row["calls_given_up"], row["set_apart"] = found.given_up, found.set_apart
        row["late_results"] = found.kinds["judged_late"]
        row["is_as_control"] = (found.attempts, found.events, found.stop) == (
            self.control.attempts, self.control.events, self.control.stop,
        )  # fmt: skip
        if not row["is_as_control"]:
            row["stop"] = found.stop
            row["differs"] = [e[:SHOWN] for e in sorted(found.events ^ self.control.events)]
        row["paid_beyond_control"] = len(self._server.asked) - paid_before - self.paid
        left = children_of(self._machine.pid)
        row["processes_left"] = len(left)
        if left:
            row["left"] = left
        row["partial_files_left"] = len(list(folder.rglob("*.tmp*")))
        return row

    def _folder(self, name: str) -> Path:
        folder = self._parent / name
        folder.mkdir()
        return folder

    def _run(self, folder: Path, blows: list[Blow]) -> int | None:
        """Run the command until it ends; take the blows that fall from the list."""
        words = command(folder, self._server.url)
        env = {"JUDGE": "process", "JUDGE_S": JUDGE_S, "HEARTBEAT_S": HEARTBEAT_S}
        stopped: list[Process] = []
        is_hung = False
        with self._machine.started(*words, cwd=folder, **env) as started:
            try:
                while blows and not started.wait(blows[0][0]):
                    self._strike(started, blows.pop(0)[1], stopped)
                is_hung = not started.wait(HUNG_S)
            finally:
                started.send(signal.SIGKILL)
                for process in stopped:  # nobody else could: its coordinator may be dead
                    hit(process, signal.SIGCONT)
        return None if is_hung else started.status

    def _strike(self, started: Command, what: str, stopped: list[Process]) -> None:
        deadline_s = time.monotonic() + FIND_S
        while (victim := _victim(started.pid, what)) is None:
            if started.wait(0.005) or time.monotonic() > deadline_s:
                return
        self._struck[what] += 1
        if what in (COORDINATOR, JUDGE, CANDIDATE):
            hit(victim, signal.SIGKILL)
        else:
            hit(victim, signal.SIGSTOP)
        if what == COORDINATOR:
            started.wait(HUNG_S)
        elif what == JUDGE_STOPPED:
            stopped.append(victim)
        elif what in (JUDGE_PAUSED, COORDINATOR_PAUSED):
            time.sleep(PAUSE_S)
            hit(victim, signal.SIGCONT)


def hit(process: Process, number: signal.Signals) -> None:
    """Send a signal to this process, and to no other that has its number by now."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(process.pid)
        try:
            if any((p.pid, p.start) == (process.pid, process.start) for p in process_table()):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def _victim(coordinator: int, what: str) -> Process | None:
    living = [process for process in process_table() if not process.zombie]
    if what in (COORDINATOR, COORDINATOR_PAUSED):
        return next((p for p in living if p.pid == coordinator), None)
    judge = next((p for p in living if p.parent == coordinator and _has_begun(p)), None)
    if judge is None or what != CANDIDATE:
        return judge
    return next((p for p in living if p.parent == judge.pid), None)


def _has_begun(judge: Process) -> bool:
    """Whether a judge runs its own program; one that is stopped before keeps whoever forks it."""
    with suppress(OSError):
        return b"fake_judge" in Path(f"/proc/{judge.pid}/cmdline").read_bytes()
    return False


def _events(run: Path) -> list[tuple[int, str, Mapping[str, Any]]]:
    try:
        with RunReader(run) as reader:
            return [(event.seq, event.kind, event.payload) for event in reader.events()]
    except ForeignRun:
        return []  # killed before there was a journal


def children_of(pid: int) -> list[str]:
    """Return the processes that this one has started or inherited, and not taken back."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [_told(child) for child in found]


def _told(pid: str) -> str:
    """Return how a process was called and in which state it is."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return f"{pid}: gone"
    return f"{words.strip()[-80:]} ({state})"


def summarise_rounds(rows: Sequence[Row]) -> Row:
    """Return what all rounds came to."""
    struck: Counter[str] = Counter()
    for row in rows:
        struck.update(row["blows"])
    otherwise = [row for row in rows if not row["is_as_control"]]
    kills = [row["blows"].get(COORDINATOR, 0) for row in rows]
    return {
        "rounds": len(rows),
        "rounds_with_a_blow": sum(bool(row["blows"]) for row in rows),
        "blows": dict(sorted(struck.items())),
        "lost": sum(row["lost"] for row in rows),
        "refused": sum(row["refused"] for row in rows),
        "hung": sum(row["hung"] for row in rows),
        "exit_not_0": sum(row["exit"] != 0 for row in rows),
        "rounds_with_a_call_given_up": sum(row["calls_given_up"] > 0 for row in rows),
        "rounds_with_a_candidate_set_apart": sum(row["set_apart"] > 0 for row in rows),
        "not_as_control_otherwise": sum(
            not (row["calls_given_up"] or row["set_apart"]) for row in otherwise
        ),
        "late_results_not_scored": sum(row["late_results"] for row in rows),
        "most_paid_beyond_control_per_kill": max(
            row["paid_beyond_control"] / max(1, count)
            for row, count in zip(rows, kills, strict=True)
        ),
        "processes_left": max(row["processes_left"] for row in rows),
        "partial_files_left": sum(row["partial_files_left"] for row in rows),
    }
