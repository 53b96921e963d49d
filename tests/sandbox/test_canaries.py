"""The canaries bite: everything succeeds without a cage, nothing inside one."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from caging import UNPRIVILEGED, spec_for, system_spec

from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import run_canaries
from hotloop.sandbox.canary_attacks import ATTACKS


def test_every_attack_works_without_isolation(work_dir: str) -> None:
    succeeded = set(run_canaries(spec_for("T0", work_dir)))
    yama = "/proc/sys/kernel/yama/ptrace_scope"
    if os.path.exists(yama) and os.geteuid() != 0:
        succeeded.add("trace_parent")  # that machine refuses it to everybody
    assert succeeded == set(ATTACKS)


@pytest.mark.parametrize("tier", ["T1", "T2"])
@pytest.mark.parametrize("drop_uid", [None, UNPRIVILEGED])
def test_no_attack_works_inside(
    needs_t2: None, work_dir: str, tier: str, drop_uid: int | None
) -> None:
    assert run_canaries(spec_for(tier, work_dir, drop_uid=drop_uid)) == ()
    assert run_canaries(system_spec(tier, work_dir, drop_uid=drop_uid)) == ()


def test_a_hole_is_found(needs_t1: None, work_dir: str) -> None:
    spec = spec_for("T1", work_dir)
    assert run_canaries(replace(spec, read_paths=(*spec.read_paths, "/tmp"))) == ("read_file",)
    assert set(run_canaries(replace(spec, write_paths=("/tmp",)))) == {"read_file", "write_outside"}


def test_a_cage_that_cannot_be_entered_is_an_error(needs_t1: None, work_dir: str) -> None:
    spec = replace(spec_for("T1", work_dir), write_paths=("/proc/self/root/etc",)[:0])
    os.symlink("/etc", f"{work_dir}/etc")
    with pytest.raises(SandboxUnavailable, match="canaries could not enter"):
        run_canaries(replace(spec, write_paths=(f"{work_dir}/etc",)))
