"""A search that is killed at any point and started again ends as if nothing had happened."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.engine.result import StopReason, collect
from hotloop.store.sqlite import SqliteStore

CHILD = Path(__file__).with_name("crash_child.py")

POINTS = ["after-begin:1", "after-rename:4", "before-conclude:5", "verify-final:1"]

MORE_POINTS = [
    "before-begin:1",
    "before-note-setup:1",
    "after-note-setup:1",
    "before-propose:1",
    "before-propose:7",
    "before-fsync:1",
    "after-fsync:1",
    "after-fsync:9",
    "before-rename:1",
    "after-propose:1",
    "after-propose:12",
    "build:1",
    "build:6",
    "verify-fast:1",
    "verify-fast:12",
    "before-conclude:12",
    "after-conclude:1",
    "after-conclude:12",
    "before-spend:1",
    "after-spend:1",
    "before-note-final:1",
    "after-note-final:1",
    "before-note-stopped:1",
    "after-note-stopped:1",
]


def search(folder: Path, *fate: str) -> int:
    child = subprocess.run(
        [sys.executable, str(CHILD), str(folder), *fate], capture_output=True, text=True
    )
    assert child.returncode in (0, -signal.SIGKILL), child.stderr
    return child.returncode


def outcome(folder: Path) -> dict:
    with SqliteStore(folder) as store:
        result = collect(store, StopReason.EXHAUSTED)
        candidates = [store.candidate(a.candidate_id).id for a in result.attempts]
    assert candidates == [a.candidate_id for a in result.attempts]
    point = {a.id: sorted(a.point.items()) for a in result.attempts}
    return {
        "verdicts": sorted((point[a.id], a.verdict.status, a.objective) for a in result.attempts),
        "best": point[result.best_attempt_id],
        "final": result.final,
    }


def verifications(folder: Path) -> list[str]:
    return folder.with_suffix(".log").read_text().split("\n")[:-1]


@pytest.fixture(scope="module")
def control(tmp_path_factory):
    folder = tmp_path_factory.mktemp("control") / "run"
    assert search(folder) == 0
    return outcome(folder), verifications(folder)


def check(folder: Path, fate: str, control) -> None:
    assert search(folder, fate) == -signal.SIGKILL, f"{fate} was never reached"
    assert search(folder) == 0
    expected, paid = control
    assert outcome(folder) == expected
    assert set(verifications(folder)) == set(paid)
    assert len(verifications(folder)) <= len(paid) + 1


@pytest.mark.parametrize("fate", POINTS)
def test_killed_and_resumed(tmp_path, control, fate):
    check(tmp_path / "run", fate, control)


@pytest.mark.slow
@pytest.mark.parametrize("fate", MORE_POINTS)
def test_killed_and_resumed_at_more_points(tmp_path, control, fate):
    check(tmp_path / "run", fate, control)


@pytest.mark.slow
def test_killed_again_and_again(tmp_path, control):
    folder = tmp_path / "run"
    deaths = 0
    while search(folder, "after-conclude:2") != 0:
        deaths += 1
    assert deaths == 6
    assert outcome(folder) == control[0]
