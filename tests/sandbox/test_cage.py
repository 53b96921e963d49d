"""Entering: session, descriptors, death with the parent, limits, and the refusals to enter."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import select
import signal
import threading
import time
from dataclasses import replace

import pytest
from caging import UNPRIVILEGED, Cage, attempts, run_outside, spec_for, system_spec

from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import CageReport, CageSpec, Limits, Tier, enter

MIB = 1 << 20


def test_report_says_what_is_in_force(cage: Cage) -> None:
    outcome = cage.outcome(lambda _: (os.getuid(), os.getcwd(), os.getsid(0) == os.getpid()))
    report = outcome.report
    assert report is not None
    assert outcome.value == (report.uid, cage.spec.work_dir, True)
    assert (report.tier, report.seccomp) == (cage.spec.tier, True)
    assert report.landlock_abi >= 1
    assert bool(report.namespaces) == (report.tier is Tier.NAMESPACES)
    assert CageReport.from_json(report.to_json()) == report


def test_unconfined_tier_says_so(work_dir: str, hidden: str) -> None:
    outcome = Cage(spec_for("T0", work_dir)).outcome(lambda _: os.listdir(hidden))
    assert sorted(outcome.value) == ["open", "secret"]
    assert outcome.report is not None
    assert (outcome.report.tier, outcome.report.seccomp) == (Tier.NONE, False)
    assert any("no isolation" in line for line in outcome.report.missing)


def test_descriptors_are_closed_except_kept(needs_t1: None, work_dir: str) -> None:
    extra = os.open("/etc/passwd", os.O_RDONLY)

    def is_open(_: int) -> dict[str, str]:
        return attempts({"extra": lambda: os.fstat(extra), "kept": lambda: os.fstat(2)})

    try:
        assert Cage(spec_for("T1", work_dir)).run(is_open) == {"extra": "EBADF", "kept": "ok"}
        assert run_outside(is_open) == {"extra": "ok", "kept": "ok"}
    finally:
        os.close(extra)


def test_standard_descriptors_become_null(needs_t1: None, work_dir: str) -> None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            enter(spec_for("T1", work_dir), keep_fds=[writer])
            os.write(1, b"lost")
            same = {os.fstat(fd).st_rdev for fd in (0, 1, 2)} == {os.makedev(1, 3)}
            os.write(writer, b"null" if same else b"open")
        finally:
            os._exit(0)
    os.close(writer)
    assert os.read(reader, 100) == b"null"
    os.close(reader)
    os.waitpid(child, 0)


@pytest.mark.parametrize("tier", ["T1", "T2"])
@pytest.mark.parametrize("drop", [False, True])
def test_dies_with_its_parent(needs_t2: None, work_dir: str, tier: str, drop: bool) -> None:
    """Also after the change of user, which makes the kernel forget the death signal."""
    drop_uid = UNPRIVILEGED if drop and os.geteuid() == 0 else None
    spec = system_spec(tier, work_dir, drop_uid=drop_uid)
    alive, held = os.pipe()
    parent = os.fork()
    if parent == 0:
        own = os.getpid()
        if os.fork() == 0:
            enter(spec, keep_fds=[held], parent_pid=own)
            os.write(held, b"in")
            signal.pause()
        os.close(held)
        signal.pause()
    os.close(held)
    assert os.read(alive, 10) == b"in"
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    poll = select.poll()
    poll.register(alive, select.POLLIN)
    assert poll.poll(5000), "the caged process outlived its parent by 5 s"
    assert os.read(alive, 10) == b""
    os.close(alive)


def test_parent_that_is_gone_already_ends_the_child(needs_t1: None, work_dir: str) -> None:
    child = os.fork()
    if child == 0:
        try:
            enter(spec_for("T1", work_dir), parent_pid=1 << 22)
        finally:
            os._exit(77)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def refusal(spec: CageSpec) -> str:
    try:
        enter(spec)
    except SandboxUnavailable as exc:
        return str(exc)
    return "entered"


def test_threads_are_refused(needs_t1: None, work_dir: str) -> None:
    def inside(_: int) -> str:
        gate = threading.Event()
        thread = threading.Thread(target=gate.wait)
        thread.start()
        try:
            return refusal(spec_for("T1", work_dir))
        finally:
            gate.set()
            thread.join()

    assert "expected a process with one thread, found 2" in run_outside(inside)


def test_group_leader_is_refused(needs_t1: None, work_dir: str) -> None:
    def inside(_: int) -> str:
        os.setpgid(0, 0)
        return refusal(spec_for("T1", work_dir))

    assert "leads no process group" in run_outside(inside)


OTHERWISE_UNUSED = 61234


def limited(work_dir: str, limits: Limits, uid: int = UNPRIVILEGED) -> Cage:
    drop_uid = uid if os.geteuid() == 0 else None
    return Cage(system_spec("T1", work_dir, drop_uid=drop_uid, limits=limits))


def private_bytes() -> int:
    """Return what RLIMIT_DATA counts of the test runner, which its children start with."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024


def test_memory_limit_spares_reservations(needs_t1: None, work_dir: str) -> None:
    def allocate(_: int) -> dict[str, str]:
        def heap(size: int) -> None:
            try:
                bytearray(size)
            except MemoryError:
                raise OSError(errno.ENOMEM, "no memory") from None

        return attempts(
            {
                "small": lambda: heap(32 * MIB),
                "large": lambda: heap(900 * MIB),
                "reservation": lambda: mmap.mmap(-1, 1 << 42, prot=0, flags=0x4022),
            }
        )

    used = private_bytes()
    answers = limited(work_dir, Limits(data_bytes=used + 256 * MIB)).run(allocate)
    assert answers == {"small": "ok", "large": "ENOMEM", "reservation": "ok"}


def test_file_and_descriptor_limits(needs_t1: None, work_dir: str) -> None:
    def use(_: int) -> dict[str, str]:
        with open("big", "wb", buffering=0) as file:
            return attempts(
                {
                    "small file": lambda: file.write(bytes(1000)),
                    "large file": lambda: os.pwrite(file.fileno(), b"x", 2 * MIB),
                    "many files": lambda: [os.dup(0) for _ in range(100)],
                }
            )

    answers = limited(work_dir, Limits(file_bytes=MIB, open_files=64)).run(use)
    assert answers == {"small file": "ok", "large file": "EFBIG", "many files": "EMFILE"}


def fork_many(_: int) -> int:
    """Fork until refused, at most 40 times; the children end with the first."""
    children = []
    try:
        for _ in range(40):
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    except BlockingIOError:
        return len(children)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return len(children)


def test_process_limit(needs_root: None, needs_t1: None, work_dir: str) -> None:
    # A user of its own: the kernel counts by user, and other tests' processes come and go.
    assert limited(work_dir, Limits(processes=8), OTHERWISE_UNUSED).run(fork_many) <= 8
    assert limited(work_dir, Limits(processes=80), OTHERWISE_UNUSED).run(fork_many) == 40


def test_process_limit_in_a_user_namespace(needs_root: None, needs_t2: None, work_dir: str) -> None:
    os.chown(work_dir, UNPRIVILEGED, UNPRIVILEGED)
    spec = system_spec("T2", work_dir, limits=Limits(processes=8))
    outcome = Cage(spec, start_uid=UNPRIVILEGED).outcome(fork_many)
    assert outcome.report is not None
    assert "user" in outcome.report.namespaces
    assert 1 <= outcome.value <= 8


@pytest.mark.slow
def test_processor_time_limit_kills(needs_t1: None, work_dir: str) -> None:
    def spin(_: int) -> None:
        while time.monotonic():
            pass

    outcome = limited(work_dir, Limits(cpu_s=1)).outcome(spin)
    assert os.waitstatus_to_exitcode(outcome.wait_status) in (-signal.SIGXCPU, -signal.SIGKILL)


def test_crash_leaves_no_core_file(cage: Cage) -> None:
    spec = replace(cage.spec, limits=Limits())

    def crash(_: int) -> None:
        assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
        os.kill(os.getpid(), signal.SIGSEGV)

    outcome = Cage(spec, cage.start_uid).outcome(crash)
    assert os.waitstatus_to_exitcode(outcome.wait_status) == -signal.SIGSEGV
    assert os.listdir(cage.spec.work_dir) == ["tmp"]
