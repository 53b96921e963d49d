"""Files: closed outside the cage's paths, open inside them, and the closed ones open without it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace

import pytest
from caging import UNPRIVILEGED, Cage, attempts, run_outside, spec_for, system_spec

from hotloop.errors import ConfigError, SandboxUnavailable
from hotloop.sandbox import CageSpec, default_paths


def tamper(hidden: str, work_dir: str) -> dict[str, Callable[[], object]]:
    """Every way to read or change a file that is not the cage's; the order matters outside."""
    secret, target = f"{hidden}/secret", f"{hidden}/open"
    return {
        "read": lambda: read(secret),
        "list": lambda: os.listdir(hidden),
        "create": lambda: write(f"{target}/new"),
        "overwrite": lambda: write(f"{target}/new"),
        "truncate": lambda: os.truncate(f"{target}/new", 0),
        "make folder": lambda: os.mkdir(f"{target}/folder"),
        "remove folder": lambda: os.rmdir(f"{target}/folder"),
        "symlink": lambda: os.symlink("/", f"{target}/link"),
        "fifo": lambda: os.mkfifo(f"{target}/fifo"),
        "rename": lambda: os.rename(f"{target}/new", f"{target}/newer"),
        "hard link into work": lambda: os.link(f"{target}/newer", f"{work_dir}/stolen"),
        "move into work": lambda: os.rename(f"{target}/newer", f"{work_dir}/moved"),
        "read by symlink": lambda: read_by_link(secret, f"{work_dir}/to-secret"),
        "remove": lambda: os.unlink(f"{target}/link"),
    }


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write(path: str) -> None:
    with open(path, "wb") as file:
        file.write(b"x")


def read_by_link(secret: str, link: str) -> bytes:
    os.symlink(secret, link)
    return read(link)


def test_foreign_files_are_closed(cage: Cage, hidden: str) -> None:
    answers = cage.run(lambda _: attempts(tamper(hidden, cage.spec.work_dir)))
    assert "ok" not in answers.values()
    assert set(answers.values()) <= {"EACCES", "EXDEV", "EPERM", "ENOENT"}
    assert os.listdir(f"{hidden}/open") == []


def test_foreign_files_are_open_outside(hidden: str, work_dir: str) -> None:
    answers = run_outside(lambda _: attempts(tamper(hidden, work_dir)))
    assert set(answers.values()) == {"ok"}


def change_attributes(path: str) -> dict[str, Callable[[], object]]:
    return {
        "chmod": lambda: os.chmod(path, 0o644),
        "utime": lambda: os.utime(path),
        "chown": lambda: os.chown(path, os.getuid(), -1),
        "chmod of an open file": lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o644),
    }


def test_attributes_of_own_files_are_closed(cage: Cage) -> None:
    """Landlock does not guard these; the filter does, even on the cage's own files."""

    def inside(_: int) -> dict[str, str]:
        write("mine")
        return attempts(change_attributes("mine"))

    assert set(cage.run(inside).values()) == {"EPERM"}


def test_attributes_of_own_files_are_open_outside(work_dir: str) -> None:
    write(f"{work_dir}/mine")
    answers = run_outside(lambda _: attempts(change_attributes(f"{work_dir}/mine")))
    assert set(answers.values()) == {"ok"}


def use_work_dir(_: int) -> dict[str, str]:
    """What a compiler does in its folder; relative paths, because `enter` goes there."""
    return attempts(
        {
            "write": lambda: write("a"),
            "read": lambda: read("a"),
            "append and truncate": lambda: os.truncate("a", 0),
            "folder": lambda: os.makedirs("b/c"),
            "rename across folders": lambda: os.rename("a", "b/c/a"),
            "symlink": lambda: os.symlink("b", "d"),
            "hard link": lambda: os.link("b/c/a", "e"),
            "fifo": lambda: os.mkfifo("f"),
            "list": lambda: os.listdir("."),
            "remove": lambda: os.unlink("e"),
            "temporary folder": lambda: write("tmp/t"),
            "null device": lambda: write("/dev/null"),
            "random device": lambda: open("/dev/urandom", "rb").close(),
            "system library": lambda: os.listdir("/usr/lib"),
            "run a copied program": lambda: run_copy("/bin/true"),
        }
    )


def run_copy(program: str) -> None:
    copy = os.open("prog", os.O_CREAT | os.O_WRONLY, 0o755)
    os.write(copy, read(program))
    os.close(copy)
    subprocess.run(["./prog"], check=True)


def test_work_dir_is_open(cage: Cage) -> None:
    assert {n: a for n, a in cage.run(use_work_dir).items() if a != "ok"} == {}


def test_work_dir_is_given_with_its_content(
    needs_t1: None, needs_root: None, work_dir: str
) -> None:
    os.mkdir(f"{work_dir}/in", 0o700)
    write(f"{work_dir}/in/candidate.py")
    os.chmod(f"{work_dir}/in/candidate.py", 0o600)
    cage = Cage(system_spec("T1", work_dir, drop_uid=UNPRIVILEGED))
    assert cage.run(lambda _: (os.getuid(), read("in/candidate.py"))) == (UNPRIVILEGED, b"x")


def test_handing_over_skips_files_with_a_second_name(
    needs_t1: None, needs_root: None, work_dir: str, hidden: str
) -> None:
    os.chmod(f"{hidden}/secret", 0o600)
    os.link(f"{hidden}/secret", f"{work_dir}/trap")
    os.symlink(f"{hidden}/open", f"{work_dir}/link")
    cage = Cage(system_spec("T1", work_dir, drop_uid=UNPRIVILEGED))
    assert cage.run(lambda _: os.getuid()) == UNPRIVILEGED
    assert os.stat(f"{hidden}/secret").st_uid == 0
    assert os.stat(f"{hidden}/open").st_uid == 0


def look_at(pid: int) -> dict[str, Callable[[], object]]:
    return {
        "environ": lambda: read(f"/proc/{pid}/environ"),
        "maps": lambda: read(f"/proc/{pid}/maps"),
        "mem": lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY)),
        "fd": lambda: os.readlink(f"/proc/{pid}/fd/{min(os.listdir(f'/proc/{pid}/fd'))}"),
        "cwd": lambda: os.readlink(f"/proc/{pid}/cwd"),
        "root": lambda: os.listdir(f"/proc/{pid}/root"),
    }


def test_processes_outside_cannot_be_read(cage: Cage) -> None:
    answers = cage.run(lambda pid: attempts(look_at(pid)))
    assert set(answers.values()) <= {"EACCES", "EPERM", "ENOENT"}
    answers = cage.run(lambda _: attempts(look_at(os.getppid())))
    assert set(answers.values()) <= {"EACCES", "EPERM", "ENOENT"}


def test_processes_can_be_read_outside() -> None:
    assert set(run_outside(lambda pid: attempts(look_at(pid))).values()) == {"ok"}


def test_kernel_settings_are_read_only(cage: Cage) -> None:
    answers = cage.run(
        lambda _: attempts(
            {
                "read version": lambda: read("/proc/version"),
                "read own status": lambda: read("/proc/self/status"),
                "core pattern": lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
                "own oom score": lambda: os.open("/proc/self/oom_score_adj", os.O_WRONLY),
                "kernel log": lambda: os.open("/dev/kmsg", os.O_WRONLY),
                "terminal": lambda: os.open("/dev/tty", os.O_RDWR),
            }
        )
    )
    assert answers.pop("read version") == answers.pop("read own status") == "ok"
    assert "ok" not in answers.values()


def test_missing_path_is_reported_and_weakens_nothing(
    needs_t1: None, work_dir: str, hidden: str
) -> None:
    spec = spec_for("T1", work_dir)
    spec = replace(
        spec,
        read_paths=(*spec.read_paths, "/no/such/place"),
        write_paths=("/nor/this/one", *spec.write_paths),
    )
    outcome = Cage(spec).outcome(lambda _: attempts(tamper(hidden, work_dir)))
    assert outcome.report is not None
    assert [line for line in outcome.report.missing if "/no/such/place" in line]
    assert [line for line in outcome.report.missing if "/nor/this/one" in line]
    assert "ok" not in outcome.value.values()


def test_missing_work_dir_is_an_error(needs_t1: None, work_dir: str) -> None:
    os.rmdir(work_dir)
    os.symlink("/proc/version/nowhere", work_dir)
    with pytest.raises(AssertionError, match=SandboxUnavailable.__name__):
        Cage(spec_for("T1", work_dir)).run(lambda _: None)


def test_symlink_to_a_system_folder_gives_no_write_right(
    needs_t1: None, work_dir: str, hidden: str
) -> None:
    os.symlink("/etc", f"{hidden}/innocent")
    spec = replace(spec_for("T1", work_dir), write_paths=(f"{hidden}/innocent",))
    with pytest.raises(AssertionError, match=ConfigError.__name__):
        Cage(spec).run(lambda _: None)


def test_extra_paths_are_granted_as_asked(needs_t1: None, work_dir: str, hidden: str) -> None:
    base = spec_for("T1", work_dir)

    def inside(_: int) -> dict[str, str]:
        both = tamper(hidden, work_dir)
        return attempts({name: both[name] for name in ("read", "create")})

    readable = CageSpec("T1", work_dir, (*base.read_paths, hidden), base.write_paths)
    assert Cage(readable).run(inside) == {"read": "ok", "create": "EACCES"}
    writable = replace(base, write_paths=(f"{hidden}/open",))
    assert Cage(writable).run(inside) == {"read": "EACCES", "create": "ok"}


def test_own_threads_can_be_named_by_file(needs_t1: None, work_dir: str) -> None:
    """libcuda opens /proc/self/task/TID/comm with O_TRUNC; refused, cuInit fails with 304."""

    def name_thread(_: int) -> dict[str, str]:
        path = f"/proc/self/task/{os.getpid()}/comm"
        return attempts({"name": lambda: write(path)})

    base = spec_for("T1", work_dir)
    granted = replace(base, write_paths=default_paths(0).write, gpu=0)
    assert Cage(granted).run(name_thread) == {"name": "ok"}
    assert Cage(base).run(name_thread) == {"name": "EACCES"}
