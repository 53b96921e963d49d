"""What a candidate leaves is removed, however deep or odd, and nothing beside it is touched."""

from __future__ import annotations

import os
import shutil

import pytest
from caging import UNPRIVILEGED, Cage, run_outside, system_spec

from hotloop.sandbox import remove_tree

DEPTH = 1500


def dig(depth: int) -> None:
    """Make nested folders whose path is longer than the kernel takes, from the current one."""
    for _ in range(depth):
        os.mkdir("a" * 20)
        os.chdir("a" * 20)
    with open("end", "w") as file:
        file.write("x")


def dig_in(folder: str) -> None:
    here = os.getcwd()
    os.chdir(folder)
    try:
        dig(DEPTH)
    finally:
        os.chdir(here)


def test_deep_folders_are_removed(work_dir: str) -> None:
    dig_in(work_dir)
    with pytest.raises((RecursionError, OSError)):
        shutil.rmtree(work_dir)
    remove_tree(work_dir)
    assert not os.path.exists(work_dir)
    os.mkdir(work_dir)


def test_odd_names_modes_and_kinds_are_removed(work_dir: str, hidden: str) -> None:
    def as_a_plain_user(_: int) -> bool:
        os.makedirs(f"{work_dir}/closed/inner")
        os.mkdir(f"{work_dir}/closed/inner/empty", 0o000)
        os.mkfifo(f"{work_dir}/closed/fifo")
        os.symlink(hidden, f"{work_dir}/closed/link")
        os.symlink("nowhere", f"{work_dir}/\udcff\n")
        os.mkdir(f"{work_dir}/beside")
        for folder in ("closed/inner", "closed"):
            os.chmod(f"{work_dir}/{folder}", 0o000)
        remove_tree(f"{work_dir}/closed")
        names = os.listdir(work_dir)
        return "closed" not in names and len(names) == 2

    user = UNPRIVILEGED if os.geteuid() == 0 else None
    if user is not None:
        os.chown(work_dir, user, user)
    assert run_outside(as_a_plain_user, start_uid=user)
    assert sorted(os.listdir(hidden)) == ["open", "secret"]
    remove_tree(work_dir)
    os.mkdir(work_dir)


def test_a_link_is_not_followed_and_nothing_is_no_error(work_dir: str, hidden: str) -> None:
    os.symlink(hidden, f"{work_dir}/link")
    with pytest.raises(OSError, match="link"):
        remove_tree(f"{work_dir}/link")
    remove_tree(f"{work_dir}/absent")
    assert sorted(os.listdir(hidden)) == ["open", "secret"]


def test_equal_names_on_many_levels_do_not_meet(work_dir: str) -> None:
    for number in range(3):
        os.makedirs(f"{work_dir}/{number}/{number}/{number}/{number}/full")
    remove_tree(work_dir)
    assert not os.path.exists(work_dir)
    os.mkdir(work_dir)


def test_a_cage_is_entered_over_deep_folders(
    needs_t1: None, needs_root: None, work_dir: str
) -> None:
    """A compile lane leaves them; the candidate that follows in the same folder must start."""
    dig_in(work_dir)
    os.mkdir(f"{work_dir}/in")
    cage = Cage(system_spec("T1", work_dir, drop_uid=UNPRIVILEGED))
    assert cage.run(lambda _: os.stat("in").st_uid) == UNPRIVILEGED
    remove_tree(work_dir)
    os.mkdir(work_dir)
