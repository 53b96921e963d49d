"""Strikes runs at random moments and soaks one: writes benchmarks/results/durability.json.

    python -m benchmarks.durability [--rounds 200] [--evaluations 10000] [--seed 0] [--workers 2]

What a round is says `benchmarks/killer.py`, what a soak is `benchmarks/soak.py`. No GPU and no
compiler is involved: nothing here says how fast a kernel is.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.fake_machine import FakeMachine
from benchmarks.fake_run import DigestServer
from benchmarks.killer import Killer, Row, summarise_rounds
from benchmarks.results_file import RESULTS, commit, write_results
from benchmarks.soak import FEWEST, soak

FILE = RESULTS / "durability.json"
KEY = "sk-for-a-server-of-our-own"


def strike(numbers: Sequence[int], seed: int) -> tuple[list[Row], Row]:
    """Run rounds one after the other; return their rows, and what the control run was."""
    rows = []
    with (
        tempfile.TemporaryDirectory() as parent,
        DigestServer() as server,
        FakeMachine() as machine,
    ):
        killer = Killer(machine, server, Path(parent))
        for number in numbers:
            rows.append(killer.round(number, seed))
            print(rows[-1], flush=True)
    return rows, {"calls": killer.paid, "attempts": len(killer.control.attempts)}


def summarise(rows: Sequence[Row], soaked: Mapping[str, Any], control: Mapping[str, Any]) -> Row:
    """Return the figures that the project claims."""
    return {
        "control": dict(control),
        "random_killer": summarise_rounds(rows),
        "soak": {name: value for name, value in soaked.items() if name != "samples"},
    }


def table(summary: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the figures as lines of text."""
    lines = []
    for part in ("random_killer", "soak"):
        lines.append(part)
        lines += [f"  {name:<40} {value}" for name, value in summary[part].items()]
    return "\n".join(lines)


def environment() -> dict[str, Any]:
    """Return what the figures depend on."""
    names = ("hotloop", "openai", "pydantic", "typer")
    return {
        "gpu": None,
        "judge": "a process of its own, fake",
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
    parser.add_argument("--workers", type=int, default=2, help="rounds at a time")
    asked = parser.parse_args()
    if asked.rounds < asked.workers or asked.workers < 1 or asked.evaluations < FEWEST:
        parser.error(f"expected at least 1 worker, a round for each, and {FEWEST} evaluations")
    commit()  # found now: what is measured is what is there now
    os.environ["OPENAI_API_KEY"] = KEY
    shares = [range(first + 1, asked.rounds + 1, asked.workers) for first in range(asked.workers)]
    with ThreadPoolExecutor(asked.workers) as pool:
        found = list(pool.map(lambda numbers: strike(numbers, asked.seed), shares))
    rows = sorted((row for share, _ in found for row in share), key=lambda row: row["round"])
    soaked = soak(asked.evaluations, watch=lambda sample: print(sample, flush=True))
    summary = summarise(rows, soaked, found[0][1])
    write_results(
        FILE,
        command=f"make bench-durability ARGS='--rounds {asked.rounds} "
        f"--evaluations {asked.evaluations} --seed {asked.seed} --workers {asked.workers}'",
        environment=environment(),
        rows=rows,
        summary={**summary, "soak_samples": soaked["samples"]},
    )
    print(table(summary))


if __name__ == "__main__":
    main()
