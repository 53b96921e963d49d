"""Judges of one GPU: any number beside each other, one alone, and a dead one holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.worker.timing_turns import NoTurns, TimingTurns, Where

SRC = Path(__file__).parents[2] / "src"
WORKER = """
import sys, time
from pathlib import Path
from hotloop.worker.timing_turns import TimingTurns
folder, how, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
turns = TimingTurns(folder, "GPU-0", judges=2, settle=lambda: None)
print("asks", time.monotonic(), flush=True)
with getattr(turns, how)():
    print("in", time.monotonic(), flush=True)
    time.sleep(seconds)
    print("out", time.monotonic(), flush=True)
"""


class Worker:
    """A process that uses the GPU once."""

    def __init__(self, folder: Path, how: str, seconds: float) -> None:
        command = [sys.executable, "-c", WORKER, str(folder), how, str(seconds)]
        env = {**os.environ, "PYTHONPATH": str(SRC)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        self._read("asks")

    def _read(self, word: str) -> float:
        assert self.process.stdout is not None
        told, at = self.process.stdout.readline().split()
        assert told == word
        return float(at)

    def enters(self) -> float:
        """Return when it was let in."""
        return self._read("in")

    def leaves(self) -> float:
        """Return when it left."""
        at = self._read("out")
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return at


def ask(folder: Path, how: str, seconds: float = 0.3) -> Worker:
    """Start one and give it the time to reach its lock."""
    worker = Worker(folder, how, seconds)
    time.sleep(0.1)
    return worker


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[TimingTurns]:
    found = TimingTurns(tmp_path, "GPU-0", judges=2, settle=lambda: None)
    yield found
    found.close()


def test_those_beside_do_not_wait_for_each_other(turns: TimingTurns, tmp_path: Path) -> None:
    with turns.beside():
        worker = ask(tmp_path, "beside")
        worker.enters()
        worker.leaves()


def test_who_is_alone_waits_for_those_beside_and_they_for_it(
    turns: TimingTurns, tmp_path: Path
) -> None:
    with turns.beside():
        alone = ask(tmp_path, "alone")
        later = ask(tmp_path, "beside")  # came after: it has to wait for both
        left = time.monotonic()
    assert alone.enters() >= left
    assert alone.leaves() <= later.enters()
    later.leaves()


def test_those_that_time_go_one_after_another_and_before_who_comes_beside(
    turns: TimingTurns, tmp_path: Path
) -> None:
    with turns.alone():
        beside = ask(tmp_path, "beside")
        others = [ask(tmp_path, "alone") for _ in range(2)]
    times = sorted((w.enters(), w.leaves()) for w in others)
    assert times[0][1] <= times[1][0]
    assert times[1][1] <= beside.enters()
    beside.leaves()


def test_other_gpus_are_other_turns(turns: TimingTurns, tmp_path: Path) -> None:
    other = TimingTurns(tmp_path, "GPU-1", judges=2, settle=lambda: None)
    with turns.alone(), other.alone():
        assert (turns.where, other.where) == (Where.ALONE, Where.ALONE)
    other.close()


def test_a_killed_judge_holds_nothing(turns: TimingTurns, tmp_path: Path) -> None:
    worker = ask(tmp_path, "alone", 60.0)
    worker.enters()
    worker.process.send_signal(signal.SIGKILL)
    with turns.beside():
        assert worker.process.wait(10) == -signal.SIGKILL
    assert worker.process.stdout is not None
    worker.process.stdout.close()


def test_blocks_within_blocks(turns: TimingTurns) -> None:
    seen: list[Where] = []
    with turns.beside():
        with turns.alone():
            with turns.beside():
                seen.append(turns.where)
            seen.append(turns.where)
        seen.append(turns.where)
        with turns.away():
            seen.append(turns.where)
        with turns.alone_later() as begin:
            seen.append(turns.where)
            begin()
            begin()
            seen.append(turns.where)
        seen.append(turns.where)
    alone, beside, away = Where.ALONE, Where.BESIDE, Where.AWAY
    assert seen == [alone, alone, beside, away, beside, alone, beside]
    assert turns.where is away


def test_who_stays_alone_stays_until_it_is_released(turns: TimingTurns, tmp_path: Path) -> None:
    with turns.beside():
        turns.stay_alone()
    with turns.away():
        assert turns.where is Where.ALONE
    waits = ask(tmp_path, "beside")
    with turns.beside(), turns.alone():
        pass
    assert turns.where is Where.ALONE
    released = time.monotonic()
    turns.release()
    assert waits.enters() >= released
    waits.leaves()


def test_the_gpu_is_at_rest_when_it_is_left(tmp_path: Path) -> None:
    seen: list[Where] = []
    places: list[TimingTurns] = []
    places.append(
        TimingTurns(tmp_path, "GPU-0", judges=2, settle=lambda: seen.append(places[0].where))
    )
    with places[0].beside(), places[0].alone():
        pass
    places[0].close()
    assert seen == [Where.BESIDE, Where.ALONE, Where.BESIDE]


def test_a_judge_with_a_gpu_of_its_own_waits_for_nobody() -> None:
    turns = NoTurns()
    with turns.beside(), turns.alone(), turns.away(), turns.alone_later() as begin:
        begin()
    turns.stay_alone()
    turns.release()
    turns.close()
    assert not turns.shares
