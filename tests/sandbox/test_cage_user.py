"""Whose rights a cage has, by root: dropped where that user can work, kept and named where not."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from caging import UNPRIVILEGED, Cage, attempts, run_outside, system_spec
from test_file_rules import read

from hotloop.sandbox import readable_by_uid

pytestmark = pytest.mark.usefixtures("needs_root", "needs_t1")


@pytest.fixture
def private(hidden: str) -> str:
    """A folder like /root: its content is open, the way to it is not."""
    os.chmod(hidden, 0o700)
    return f"{hidden}/open"


def test_readable_by_uid(private: str) -> None:
    assert readable_by_uid(UNPRIVILEGED, ["/usr", "/etc/passwd", "/no/such/place"])
    assert not readable_by_uid(UNPRIVILEGED, ["/usr", private])
    assert readable_by_uid(0, ["/usr", private])


def test_root_is_dropped(work_dir: str) -> None:
    outcome = Cage(system_spec("T1", work_dir, drop_uid=UNPRIVILEGED)).outcome(
        lambda _: (os.getresuid(), os.getresgid(), os.getgroups())
    )
    assert outcome.value == ((UNPRIVILEGED,) * 3, (UNPRIVILEGED,) * 3, [])
    assert outcome.report is not None
    assert outcome.report.uid == UNPRIVILEGED
    assert not [line for line in outcome.report.missing if "uid 0" in line]


@pytest.mark.parametrize("tier", ["T1", "T2"])
def test_root_is_kept_and_named_where_the_user_could_not_read(
    tier: str, work_dir: str, private: str
) -> None:
    spec = system_spec(tier, work_dir, drop_uid=UNPRIVILEGED)
    outcome = Cage(replace(spec, read_paths=(*spec.read_paths, private))).outcome(
        lambda _: (os.getuid(), os.listdir(private), capability_lines())
    )
    if tier == "T1":
        uid, listing, capabilities = outcome.value
        assert (uid, listing) == (0, [])
        assert set(capabilities.values()) == {0}
    assert outcome.report is not None
    named = [line for line in outcome.report.missing if line.startswith("user: uid 0 kept")]
    assert len(named) == (1 if tier == "T1" else 0)
    assert outcome.report.uid == (0 if tier == "T1" else UNPRIVILEGED)
    assert all(private in line for line in named)


def capability_lines() -> dict[str, int]:
    lines = read("/proc/self/status").decode().splitlines()
    return {k: int(v, 16) for k, v in (x.split(":") for x in lines if x.startswith("Cap"))}


def test_kept_root_cannot_read_what_only_root_may(work_dir: str) -> None:
    def inside(_: int) -> dict[str, str]:
        return attempts(
            {
                "shadow": lambda: read("/etc/shadow"),
                "users": lambda: read("/etc/passwd"),
                "linker cache": lambda: read("/etc/ld.so.cache"),
            }
        )

    answers = Cage(system_spec("T1", work_dir)).run(inside)
    assert answers == {"shadow": "EACCES", "users": "ok", "linker cache": "ok"}
    assert run_outside(inside)["shadow"] == "ok"


def test_no_right_comes_back(work_dir: str) -> None:
    """Not by a set-uid program, not by uid 0 running a program, not by asking."""

    def inside(_: int) -> tuple[dict[str, str], str]:
        answers = attempts(
            {
                "setuid": lambda: os.setresuid(0, UNPRIVILEGED, UNPRIVILEGED),
                "chroot": lambda: os.chroot("/usr"),
                "own": lambda: os.chown("/usr", 1, 1),
            }
        )
        with os.popen("grep CapEff /proc/self/status") as pipe:
            return answers, pipe.read().split()[1]

    for drop_uid in (None, UNPRIVILEGED):
        answers, capabilities = Cage(system_spec("T1", work_dir, drop_uid=drop_uid)).run(inside)
        assert int(capabilities, 16) == 0
        assert set(answers.values()) == {"EPERM"}


def test_gpu_paths_do_not_stop_the_drop(work_dir: str) -> None:
    """Folders of /proc and of device nodes are writable to nobody as folders."""
    spec = system_spec("T1", work_dir, drop_uid=UNPRIVILEGED)
    spec = replace(spec, gpu=0, write_paths=("/proc/self/task", "/dev/shm", "/dev/null"))
    assert Cage(spec).run(lambda _: os.getuid()) == UNPRIVILEGED
