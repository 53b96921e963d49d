"""Whole commands with a fake judge and a paid endpoint, and what an unharmed run comes to."""

import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.fake_machine import Command, FakeMachine  # noqa: E402
from benchmarks.fake_run import DigestServer, Journal, command, journal_of  # noqa: E402


@dataclass
class Desk:
    """Runs the same small search as often as it is asked to."""

    machine: FakeMachine
    server: DigestServer

    def run(self, folder: Path, **env) -> Command:
        folder.mkdir(exist_ok=True)
        return self.machine.run(*command(folder, self.server.url), cwd=folder, **env)

    def paid(self) -> int:
        return len(self.server.asked)


@dataclass(frozen=True)
class Control:
    """A run that nothing happened to."""

    folder: Path
    journal: Journal
    paid: int
    reached: Counter


@pytest.fixture(scope="package")
def desk():
    patch = pytest.MonkeyPatch()
    patch.setenv("OPENAI_API_KEY", "sk-not-a-key")
    with DigestServer() as server, FakeMachine() as machine:
        yield Desk(machine, server)
    patch.undo()


@pytest.fixture(scope="package")
def control(desk, tmp_path_factory):
    folder = tmp_path_factory.mktemp("control")
    done = desk.run(folder, REACHED=folder / "reached")
    assert done.status == 0, done.output
    paid = desk.paid()
    journal = journal_of(folder / "run")
    assert desk.run(folder, REACHED=folder / "again").status == 0
    reached = Counter((folder / "reached").read_text().split())
    again = Counter((folder / "again").read_text().split())
    assert journal_of(folder / "run").events == journal.events
    assert desk.paid() == paid, "a run that is over asks nobody"
    return Control(folder, journal, paid, reached | again)


@pytest.fixture
def finished(control, tmp_path):
    """A copy of the run that is over."""
    shutil.copytree(control.folder, tmp_path / "work")
    return tmp_path / "work"
