"""A disk that is full, read-only or out of reach: one line, nothing lost, and then it goes on."""

import shutil
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import pytest
from benchmarks.fake_machine import FakeMachine
from benchmarks.fake_run import command, journal_of

from hotloop.store.lock import last_words

pytestmark = pytest.mark.slow

MOUNT = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'
WRITES = [
    "before-lock:1", "before-migration:1", "inside-migration:3", "before-run:1", "before-intent:1",
    "before-response:2", "before-cost:2", "before-blob-rename:1", "before-propose:3",
    "before-verdict:1", "before-verdict:3", "inside-rows:20", "before-final:1", "before-spend:1",
    "before-stopped:1", "before-best:1",
]  # fmt: skip
OVER_BEFORE_THE_FAULT = {"before-best:1"}

SmallDisk = namedtuple("SmallDisk", "machine folder seen")


def one_line(output: str) -> str:
    """The command's last line, which is its only complaint."""
    assert "Traceback" not in output
    complaints = [line for line in output.splitlines() if line.startswith("hotloop: ")]
    assert len(complaints) == 1, output
    assert output.splitlines()[-1] == complaints[0]
    return complaints[0]


def goes_on(desk, control, seen: Path, done, paid_before: int) -> None:
    assert done.status == 0, done.output
    with tempfile.TemporaryDirectory() as copy:  # SQLite opens nothing by way of /proc
        found = journal_of(shutil.copytree(seen / "run", Path(copy) / "run"))
    assert (found.attempts, found.events) == (control.journal.attempts, control.journal.events)
    assert desk.paid() - paid_before <= control.paid + 1


@pytest.fixture
def small_disk(desk, tmp_path):
    """A machine with a disk of 4 MiB in a name space of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    prefix = ("unshare", "-Urm", "sh", "-c", MOUNT, str(folder))
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no mount in a user name space here: {tried.stderr.strip()}")
    with FakeMachine(prefix) as machine:
        # Files of the name space are seen through the process that lives in it.
        machine.run("--version", cwd=tmp_path)
        seen = machine.root / folder.relative_to("/")
        yield SmallDisk(machine, folder, seen)


def run(desk, disk: SmallDisk, **env):
    return disk.machine.run(*command(disk.seen, desk.server.url), cwd=disk.folder, **env)


@pytest.mark.parametrize("point", WRITES)
def test_a_disk_that_fills_up(desk, control, small_disk, point):
    paid_before = desk.paid()
    full = run(desk, small_disk, FAULT_AT=point, FAULT="full")
    assert full.status == 3, full.output
    assert "the disk is full; free some space" in one_line(full.output)
    # For those who look at the folder; without a lock's file there is nothing to write it into.
    is_said = "the disk is full" in last_words(small_disk.seen / "run")
    assert is_said or point == "before-lock:1"
    again = run(desk, small_disk)
    assert again.status == 3, "still full, and still one line"
    assert "disk is full" in one_line(again.output)
    paid = desk.paid()
    (small_disk.seen / "ballast").unlink()
    goes_on(desk, control, small_disk.seen, run(desk, small_disk), paid_before)
    assert point not in OVER_BEFORE_THE_FAULT or desk.paid() == paid


def test_a_disk_that_is_full_at_the_start(desk, small_disk):
    command(small_disk.seen, desk.server.url)
    with pytest.raises(OSError, match="No space"):
        (small_disk.seen / "ballast").write_bytes(b"x" * (1 << 23))
    done = small_disk.machine.run(
        *command(small_disk.seen.parent, desk.server.url)[:1], "scaled_relu.py", "--device", "cuda",
        "--judge", "ssh://nowhere", "--out", "run", cwd=small_disk.folder,
    )  # fmt: skip
    assert done.status == 3, done.output
    assert "disk is full" in one_line(done.output)


def test_a_disk_that_became_read_only(desk, control, small_disk):
    paid_before = desk.paid()
    run(desk, small_disk, HOTLOOP_CRASH_AT="after-verdict:2")
    refused = run(desk, small_disk, FAULT_AT="before-lock:1", FAULT="read-only")
    assert refused.status == 3, refused.output
    assert "make it writable" in one_line(refused.output)
    shown = small_disk.machine.run("show", "run", cwd=small_disk.folder)
    assert (shown.status, "Traceback" in shown.output) == (0, False), shown.output
    subprocess.run(
        ["nsenter", "-t", str(small_disk.machine.pid), "-U", "-m", "--preserve-credentials",
         "mount", "-o", "remount,rw", small_disk.folder],
        check=True,
    )  # fmt: skip
    goes_on(desk, control, small_disk.seen, run(desk, small_disk), paid_before)


@pytest.mark.parametrize(
    "point", ["before-lock:1", "before-migration:1", "before-propose:3", "before-verdict:2",
              "before-best:1"],
)  # fmt: skip
def test_no_file_can_be_opened_any_more(desk, control, tmp_path, point):
    paid_before = desk.paid()
    work = tmp_path / "work"
    done = desk.run(work, FAULT_AT=point, FAULT="no-descriptors")
    if done.status != 0:  # what is open already may do
        assert done.status == 3, done.output
        assert "too many" in one_line(done.output).lower()
    goes_on(desk, control, work, desk.run(work), paid_before)


def flip(blob: Path) -> None:
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.write_bytes(data)


def test_a_damaged_blob_that_awaits_its_verdict_is_written_again_for_nothing(
    desk, control, tmp_path
):
    work = tmp_path / "work"
    paid_before = desk.paid()
    desk.run(work, HOTLOOP_CRASH_AT="before-verify:1")
    (blob,) = (work / "run" / "blobs").glob("*/*.json")
    flip(blob)
    paid = desk.paid() - paid_before
    done = desk.run(work)
    assert "is damaged" in done.output
    assert "written again" in done.output
    goes_on(desk, control, work, done, paid_before)
    assert desk.paid() - paid_before == control.paid, f"{paid} calls before were not paid again"


def test_a_damaged_blob_of_the_best_is_one_line(desk, finished):
    best = journal_of(finished / "run").attempts
    assert best
    for blob in (finished / "run" / "blobs").glob("*/*.json"):
        flip(blob)
    shutil.rmtree(finished / "run" / "best")
    done = desk.run(finished)
    assert done.status == 3, done.output
    assert "is damaged (its sha256 is not its name)" in one_line(done.output)


def test_a_second_coordinator_is_told_who_holds_the_run(desk, control, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    paid_before = desk.paid()
    words = command(work, desk.server.url)
    with FakeMachine() as other:
        other.run("--version", cwd=tmp_path)  # it has imported all that it needs
        with desk.machine.started(*words, cwd=work, JUDGE_S=1.0) as first:
            while not (work / "run" / "journal.sqlite-wal").exists():
                pass
            second = other.run(*words, cwd=work)
    assert first.status == 0
    assert second.status == 3, second.output
    assert f"held by pid {first.pid} on host" in second.output
    assert "Traceback" not in second.output
    goes_on(desk, control, work, first, paid_before)
