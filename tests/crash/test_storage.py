"""Storage that is not what it should be under a whole command."""

import signal

import pytest
from benchmarks.fake_run import journal_of

pytestmark = pytest.mark.slow

NFS, EXT4 = 0x6969, 0xEF53


@pytest.mark.parametrize("left", [0.9, 0.5, 0.1])
def test_a_torn_wal_costs_what_was_torn_off_and_no_more(desk, control, tmp_path, left):
    work = tmp_path / "work"
    killed = desk.run(work, HOTLOOP_CRASH_AT="after-verdict:4")
    assert killed.status == -signal.SIGKILL
    whole = len(journal_of(work / "run").attempts)
    wal = work / "run" / "journal.sqlite-wal"
    data = wal.read_bytes()
    wal.write_bytes(data[: int(left * len(data))])
    (work / "run" / "journal.sqlite-shm").unlink()
    paid_before = desk.paid()
    done = desk.run(work)
    assert done.status == 0, done.output
    found = journal_of(work / "run")
    assert found.attempts == control.journal.attempts
    assert found.stop == control.journal.stop
    assert whole >= 4
    assert desk.paid() - paid_before <= control.paid, "no call is sent twice in one sitting"


def test_the_shared_memory_file_is_not_missed(desk, control, tmp_path):
    work = tmp_path / "work"
    paid_before = desk.paid()
    desk.run(work, HOTLOOP_CRASH_AT="after-verdict:4")
    (work / "run" / "journal.sqlite-shm").unlink()
    assert desk.run(work).status == 0
    assert journal_of(work / "run").events == control.journal.events
    assert desk.paid() - paid_before == control.paid


@pytest.mark.parametrize(("magic", "is_told"), [(NFS, True), (EXT4, False)])
def test_a_run_folder_on_a_network_is_told_of_and_survives_a_kill(
    desk, control, tmp_path, magic, is_told
):
    work = tmp_path / "work"
    killed = desk.run(work, FILE_SYSTEM=magic, HOTLOOP_CRASH_AT="after-verdict:2")
    assert killed.status == -signal.SIGKILL
    told = [line for line in killed.output.splitlines() if "lies on NFS" in line]
    assert len(told) == is_told
    assert (work / "run" / "journal.sqlite-wal").exists() != is_told
    done = desk.run(work, FILE_SYSTEM=magic)
    assert done.status == 0, done.output
    assert journal_of(work / "run").events == control.journal.events
