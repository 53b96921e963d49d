"""T2: nothing of the machine but files is visible, and nothing survives the caged process."""

from __future__ import annotations

import os
import signal
import time

import pytest
from caging import UNPRIVILEGED, Cage, run_outside, spec_for, system_spec

from hotloop.sandbox import enter, kill_tree

pytestmark = pytest.mark.usefixtures("needs_t2")


@pytest.fixture(params=["as I am", "as plain user"])
def private(request: pytest.FixtureRequest, work_dir: str) -> Cage:
    if request.param == "as I am" or os.geteuid() != 0:
        return Cage(spec_for("T2", work_dir))
    os.chown(work_dir, UNPRIVILEGED, UNPRIVILEGED)
    return Cage(system_spec("T2", work_dir), start_uid=UNPRIVILEGED)


def processes(_: int) -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def test_only_own_processes_are_visible(private: Cage) -> None:
    assert private.run(processes) == [1, 2]
    assert len(run_outside(processes)) > 3


def test_only_loopback_is_there(private: Cage) -> None:
    def interfaces(_: int) -> list[str]:
        with open("/proc/net/dev") as file:
            return [line.split(":")[0].strip() for line in file if ":" in line]

    assert private.run(interfaces) == ["lo"]


def test_temporary_folders_are_private_and_bounded(private: Cage, hidden: str) -> None:
    def look(_: int) -> tuple[bool, int, list[str]]:
        size = os.statvfs("/dev/shm")
        return os.path.exists(hidden), size.f_blocks * size.f_frsize, os.listdir(".")

    there, size_bytes, listing = private.run(look)
    assert (there, size_bytes, listing) == (False, 512 << 20, ["tmp"])
    assert os.path.exists(hidden)


def test_work_dir_below_tmp_stays_the_same_folder(private: Cage) -> None:
    def leave_result(_: int) -> None:
        with open("result", "w") as file:
            file.write("done")

    private.run(leave_result)
    with open(f"{private.spec.work_dir}/result") as file:
        assert file.read() == "done"


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGKILL, signal.SIGTERM])
def test_signals_reach_it_and_are_mirrored(private: Cage, number: int) -> None:
    def end(_: int) -> None:
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    assert os.waitstatus_to_exitcode(private.outcome(end).wait_status) == -number


def test_exit_codes_are_mirrored(private: Cage) -> None:
    status = private.outcome(lambda _: os._exit(42)).wait_status
    assert os.waitstatus_to_exitcode(status) == 42


def beat_for_ever(path: str) -> None:
    """Fork a daemon that has left group, session and parent, and writes while it lives."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 64)
            while True:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                os.write(fd, b".")
                os.close(fd)
                time.sleep(0.01)
        os._exit(0)
    os.wait()
    while not os.path.exists(path):
        time.sleep(0.005)


def test_daemons_end_with_the_caged_process(private: Cage) -> None:
    private.run(lambda _: beat_for_ever("beat"))
    path = f"{private.spec.work_dir}/beat"
    size = os.path.getsize(path)
    time.sleep(0.05)
    assert size > 0
    assert os.path.getsize(path) == size


def test_killing_the_outer_process_ends_everything(work_dir: str) -> None:
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        enter(spec_for("T2", work_dir), keep_fds=[held])
        os.write(held, b"in")
        signal.pause()
    os.close(held)
    assert os.read(alive, 10) == b"in"
    assert kill_tree(child, 5.0)
    assert os.read(alive, 10) == b""
    os.close(alive)
    os.waitpid(child, 0)
