"""`kill -9` at every named point, then the same command: it ends as if nothing had happened."""

import signal

import pytest
from benchmarks.fake_run import ACKNOWLEDGED, journal_of

from hotloop.core import kill_points

pytestmark = pytest.mark.slow

BY_THE_CLOCK = {"before-snapshot", "snapshot-written", "after-snapshot"}
"""Points that a run comes to more or less often, as long as it takes."""
ONLY_OVER_AN_EARLIER_RESULT = {"best-moved-away"}
"""Points that only a command on a run that is over comes to."""
ONLY_WITH_A_FOLDER = {"prompt-withdrawn", "successor-put"}
"""Points where an unanswered prompt is replaced: tests/engine/test_killed_withdrawal.py."""


def check(desk, control, work, paid_before):
    """Give the same command again; the run ends as the control run did."""
    done = desk.run(work)
    assert done.status == 0, done.output
    found = journal_of(work / "run")
    assert found.attempts == control.journal.attempts
    assert found.events == control.journal.events
    assert found.stop == control.journal.stop
    assert desk.paid() - paid_before <= control.paid + 1
    names = sorted(path.name for path in (work / "run").iterdir())
    assert names == sorted(path.name for path in (control.folder / "run").iterdir())
    assert not list((work / "run").rglob("*.tmp*"))


def acknowledged(work):
    """How many events of each kind the process was told are on disk."""
    reached = (work / "reached").read_text().split()
    return {kind: reached.count(point) for point, kind in ACKNOWLEDGED.items()}


@pytest.mark.parametrize("which", ["first", "second", "last"])
@pytest.mark.parametrize("name", [n for n in kill_points.NAMES if n not in ONLY_WITH_A_FOLDER])
def test_killed_and_resumed(desk, control, tmp_path, request, name, which):
    times = control.reached[name]
    assert times, f"{name} is never reached: a run that proves nothing"
    number = {"first": 1, "second": 2, "last": times}[which]
    if name in BY_THE_CLOCK and which != "first":
        pytest.skip(f"how often {name} is reached is a matter of time")
    if number > times or (which == "last" and times <= 2):
        pytest.skip(f"{name} is reached {times} times")
    is_over = name in ONLY_OVER_AN_EARLIER_RESULT
    work = request.getfixturevalue("finished") if is_over else tmp_path / "work"
    paid_before = desk.paid()
    killed = desk.run(work, HOTLOOP_CRASH_AT=f"{name}:{number}", REACHED=work / "reached")
    assert killed.status == -signal.SIGKILL, killed.output
    if not is_over and (work / "run" / "blobs").exists():
        found = journal_of(work / "run").kinds
        assert found["begun"] == 1
        told = acknowledged(work)
        assert {kind: found[kind] for kind in told if found[kind] < told[kind]} == {}
        left = desk.paid() - paid_before
        assert found["call_intent"] >= left, "every request was on disk before it was sent"
    check(desk, control, work, paid_before)


def test_killed_again_and_again(desk, control, tmp_path):
    work = tmp_path / "work"
    paid_before = desk.paid()
    deaths = 0
    while desk.run(work, HOTLOOP_CRASH_AT="after-rows:7").status != 0:
        deaths += 1
    assert deaths >= 4
    check(desk, control, work, paid_before)
