"""Kills runs at random moments and soaks one: writes benchmarks/results/durability.json.

    python -m benchmarks.durability [--rounds 200] [--evaluations 10000] [--seed 0]

A round starts a small search with a paid endpoint (a local server) and a fake judge, kills its
process by SIGKILL at random moments, gives the same command again until it ends, and compares what
it comes to with a run that nothing happened to. A call that two kills cut off is given up, so that
it is not paid a third time: such a round ends otherwise, and is counted apart. No GPU and no
compiler is involved: nothing here says how fast a kernel is.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import signal
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.fake_machine import FakeMachine
from benchmarks.fake_run import DigestServer, Journal, command, journal_of
from benchmarks.results_file import RESULTS, commit, write_results
from benchmarks.soak import FEWEST, soak
from hotloop.errors import ForeignRun
from hotloop.store.reader import RunReader

FILE = RESULTS / "durability.json"
JUDGE_S = 0.05
MAX_KILLS = 3
"""A round is killed one to this many times."""
KEY = "sk-for-a-server-of-our-own"

Row = dict[str, Any]


class Killer:
    """Runs rounds against one control run; the seed fixes how often and when it kills."""

    def __init__(self, machine: FakeMachine, server: DigestServer, parent: Path) -> None:
        self._machine = machine
        self._server = server
        self._parent = parent
        done = self._run(self._folder("control"))
        if done != 0:
            raise SystemExit(f"expected the control run to end with 0, got {done}")
        self.paid = len(server.asked)
        self.control: Journal = journal_of(parent / "control" / "run")
        began_s = time.monotonic()
        self._run(self._folder("timed"))
        self.control_s = time.monotonic() - began_s
        """How long a run takes that nothing happens to; kills come within it."""

    def round(self, number: int, seed: int) -> Row:
        """Kill, resume, compare; return what was found."""
        moments = random.Random(f"{seed}/{number}")
        folder = self._folder(f"round-{number}")
        paid_before = len(self._server.asked)
        row: Row = {"round": number, "kills": 0, "lost": 0, "refused": 0}
        for _ in range(moments.randint(1, MAX_KILLS)):
            status = self._run(folder, kill_after_s=moments.uniform(0.0, self.control_s))
            row["kills"] += status == -signal.SIGKILL
            row["refused"] += status not in (0, -signal.SIGKILL)
            before = _events(folder / "run")
            row["lost"] += before[: len(row.get("_seen", ()))] != row.get("_seen", [])
            row["_seen"] = before
        row["exit"] = self._run(folder)
        after = _events(folder / "run")
        seen = row.pop("_seen")
        row["lost"] += after[: len(seen)] != seen
        found = journal_of(folder / "run")
        row["events_at_last_kill"] = len(seen)
        row["calls_given_up"] = found.given_up
        row["is_as_control"] = (found.attempts, found.events, found.stop) == (
            self.control.attempts, self.control.events, self.control.stop,
        )  # fmt: skip
        row["paid_beyond_control"] = len(self._server.asked) - paid_before - self.paid
        row["processes_left"] = children_of(self._machine.pid)
        row["partial_files_left"] = len(list(folder.rglob("*.tmp*")))
        return row

    def _folder(self, name: str) -> Path:
        folder = self._parent / name
        folder.mkdir()
        return folder

    def _run(self, folder: Path, *, kill_after_s: float | None = None) -> int | None:
        words = command(folder, self._server.url)
        with self._machine.started(*words, cwd=folder, JUDGE_S=JUDGE_S) as started:
            if kill_after_s is not None:
                time.sleep(kill_after_s)
                started.send(signal.SIGKILL)
        return started.status


def _events(run: Path) -> list[tuple[int, str, Mapping[str, Any]]]:
    try:
        with RunReader(run) as reader:
            return [(event.seq, event.kind, event.payload) for event in reader.events()]
    except ForeignRun:
        return []  # killed before there was a journal


def children_of(pid: int) -> int:
    """Return how many processes this one has started and not taken back."""
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())


def summarise(rows: Sequence[Row], soaked: Mapping[str, Any], control: Mapping[str, Any]) -> Row:
    """Return the figures that the project claims."""
    return {
        "control": dict(control),
        "random_killer": {
            "rounds": len(rows),
            "rounds_with_a_kill": sum(row["kills"] > 0 for row in rows),
            "kills": sum(row["kills"] for row in rows),
            "lost": sum(row["lost"] for row in rows),
            "refused": sum(row["refused"] for row in rows),
            "exit_not_0": sum(row["exit"] != 0 for row in rows),
            "rounds_with_a_call_given_up": sum(row["calls_given_up"] > 0 for row in rows),
            "not_as_control_otherwise": sum(
                not row["is_as_control"] and not row["calls_given_up"] for row in rows
            ),
            "most_paid_beyond_control_per_kill": max(
                row["paid_beyond_control"] / max(1, row["kills"]) for row in rows
            ),
            "median_events_at_last_kill": statistics.median(
                row["events_at_last_kill"] for row in rows
            ),
            "processes_left": sum(row["processes_left"] for row in rows),
            "partial_files_left": sum(row["partial_files_left"] for row in rows),
        },
        "soak": {name: value for name, value in soaked.items() if name != "samples"},
    }


def environment() -> dict[str, Any]:
    """Return what the figures depend on."""
    names = ("hotloop", "openai", "pydantic", "typer")
    return {
        "gpu": None,
        "judge": "fake",
        "killed": "the coordinator",
        "cpu_cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: version(name) for name in names},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.rounds < 1 or asked.evaluations < FEWEST:
        parser.error(f"expected at least 1 round and {FEWEST} evaluations")
    commit()  # found now: what is measured is what is there now
    os.environ["OPENAI_API_KEY"] = KEY
    rows = []
    with (
        tempfile.TemporaryDirectory() as parent,
        DigestServer() as server,
        FakeMachine() as machine,
    ):
        killer = Killer(machine, server, Path(parent))
        for number in range(1, asked.rounds + 1):
            rows.append(killer.round(number, asked.seed))
            print(rows[-1], flush=True)
    soaked = soak(asked.evaluations, watch=lambda sample: print(sample, flush=True))
    control = {"calls": killer.paid, "attempts": len(killer.control.attempts)}
    summary = summarise(rows, soaked, control)
    write_results(
        FILE,
        command=f"make bench-durability ARGS='--rounds {asked.rounds} "
        f"--evaluations {asked.evaluations} --seed {asked.seed}'",
        environment=environment(),
        rows=rows,
        summary={**summary, "soak_samples": soaked["samples"]},
    )
    print(summary)


if __name__ == "__main__":
    main()
