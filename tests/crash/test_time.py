"""The budget of real runs whose process is stopped, killed, or told another time of day."""

import signal
import time

import pytest
from benchmarks.fake_run import command, journal_of

from hotloop.engine.run_clock import HEARTBEAT_S, SUSPENDED_S

pytestmark = pytest.mark.slow

JUDGE_S = 0.3
BUDGET_S = 6
FINAL_S = 3.0
"""What the final tier may take beyond: the best kernel always gets its verdict."""


def words(desk, folder):
    folder.mkdir()
    given = command(folder, desk.server.url, calls=1000)
    given[given.index("--budget") + 1] = f"{BUDGET_S}s"
    return given


def wait_for(path):
    deadline_s = time.monotonic() + 30
    while not path.exists() and time.monotonic() < deadline_s:
        time.sleep(0.02)


def test_a_process_that_was_stopped_has_its_budget_left(desk, tmp_path):
    work = tmp_path / "work"
    stopped_s = SUSPENDED_S + 5
    began_s = time.monotonic()
    with desk.machine.started(*words(desk, work), cwd=work, JUDGE_S=JUDGE_S) as run:
        wait_for(work / "run" / "journal.sqlite-wal")
        time.sleep(2)
        run.send(signal.SIGSTOP)
        time.sleep(stopped_s)
        run.send(signal.SIGCONT)
    took_s = time.monotonic() - began_s
    assert run.status == 0, run.output
    journal = journal_of(work / "run")
    assert journal.stop == "wall"
    assert journal.spent_s <= BUDGET_S + FINAL_S
    # All but the final's reserve was used for work, and the stop was not.
    assert took_s - stopped_s == pytest.approx(journal.spent_s, abs=2.5)


@pytest.mark.parametrize("jump", ["an-hour-on", "an-hour-back"])
def test_the_time_of_day_neither_ends_nor_prolongs_a_run(desk, tmp_path, jump):
    work = tmp_path / "work"
    began_s = time.monotonic()
    given = words(desk, work)
    run = desk.machine.run(
        *given, cwd=work, JUDGE_S=JUDGE_S, FAULT_AT="after-verdict:2", FAULT=jump
    )
    took_s = time.monotonic() - began_s
    assert run.status == 0, run.output
    journal = journal_of(work / "run")
    assert journal.stop == "wall"
    assert journal.kinds["concluded"] > 3
    assert journal.spent_s <= BUDGET_S + FINAL_S
    assert took_s == pytest.approx(journal.spent_s, abs=2.5)


def test_a_run_that_is_killed_again_and_again_has_one_budget(desk, tmp_path):
    work = tmp_path / "work"
    given = words(desk, work)
    worked_s = 0.0
    deaths = 0
    while True:
        began_s = time.monotonic()
        fate = f"after-verdict:{3 + deaths}"
        run = desk.machine.run(*given, cwd=work, JUDGE_S=JUDGE_S, HOTLOOP_CRASH_AT=fate)
        worked_s += time.monotonic() - began_s
        if run.status == 0:
            break
        assert run.status == -signal.SIGKILL, run.output
        deaths += 1
    assert deaths >= 2
    spent_s = journal_of(work / "run").spent_s
    assert spent_s <= BUDGET_S + FINAL_S
    # Each session also starts up and loads, which is no part of the budget.
    assert 0 <= worked_s - spent_s <= (deaths + 1) * (HEARTBEAT_S + 1)
