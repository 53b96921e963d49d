"""The probe reports what entering really gives."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
import tempfile

from caging import Cage, run_outside, spec_for

from hotloop.sandbox import Tier, kernel, probe


def test_best_tier_can_be_entered(work_dir: str) -> None:
    found = probe()
    outcome = Cage(spec_for(found.best_tier, work_dir)).outcome(lambda _: os.getpid())
    assert outcome.report is not None
    assert outcome.report.tier is found.best_tier
    assert outcome.report.seccomp == (found.best_tier is not Tier.NONE)
    assert found.root == (os.geteuid() == 0)
    assert json.loads(json.dumps(found.to_json()))["best_tier"] == found.best_tier


def test_probe_changes_nothing_here() -> None:
    before = (os.getpid(), os.getcwd(), os.geteuid(), os.listdir("/proc/self/fd"))
    probe()
    assert (os.getpid(), os.getcwd(), os.geteuid(), os.listdir("/proc/self/fd")) == before


def test_weaker_machine_gets_a_weaker_answer_with_its_reason(needs_t1: None, work_dir: str) -> None:
    """Inside T1 namespaces cannot be made: the best cage there is another T1."""

    def inside(_: int) -> tuple[str, bool, tuple[str, ...]]:
        tempfile.tempdir = f"{work_dir}/tmp"
        found = probe()
        return found.best_tier, found.user_namespaces, found.missing

    tier, user_namespaces, missing = Cage(spec_for("T1", work_dir)).run(inside)
    assert (tier, user_namespaces) == ("T1", False)
    assert any(line.startswith("T2: expected private namespaces") for line in missing)


def test_without_landlock_nothing_is_promised(work_dir: str) -> None:
    """A filter that hides Landlock stands in for an old kernel."""

    def inside(_: int) -> tuple[str, tuple[str, ...]]:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        hide_landlock()
        found = probe()
        return found.best_tier, found.missing

    tier, missing = run_outside(inside)
    assert tier == "T0"
    assert any(line.startswith("Landlock: not enabled") for line in missing)
    assert any(
        line.startswith("T1: expected 64-bit x86 with seccomp and Landlock") for line in missing
    )


def hide_landlock() -> None:
    """Install a filter under which landlock_create_ruleset (444) does not exist."""
    load, refuse, allow = (0x20, 0, 0, 0), (6, 0, 0, 0x50000 | errno.ENOSYS), (6, 0, 0, 0x7FFF0000)
    program = [load, (0x15, 0, 1, 444), refuse, allow]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *i) for i in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    kernel.prctl(kernel.PR_SET_SECCOMP, 2, ctypes.addressof(header))
