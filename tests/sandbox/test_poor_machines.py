"""Machines that cannot give the cage: what is said, and that nothing weaker is taken in silence.

A filter on system calls stands in for an old kernel or a container; what the probe then finds is
what decides. Full and read-only folders are real mounts in a mount namespace of their own.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from caging import run_outside
from test_isolation_probe import hide_landlock

import hotloop
from hotloop.cli import checks
from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import kernel, probe
from hotloop.verify.isolation_choice import choose_tier

SOUND = {
    "best_tier": "T2", "landlock_abi": 7, "seccomp": True, "kernel": "6.18", "missing": [],
    "user_namespaces": True, "open": {"T1": [], "T2": []},
}  # fmt: skip
PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(4, 8)]


def get_init_inputs():
    return []
"""
_LOAD_NUMBER, _UNSHARE = (0x20, 0, 0, 0), 272
FULL = """
mount -t tmpfs -o size=64k tmpfs "$0" && cp problem.py "$0" && cd "$0"
head -c 100000 /dev/zero > "$0/ballast"
mount --bind "$0" /var/tmp && mount --bind "$0" /tmp && cd /tmp && exec "$@"
"""


def refuse_namespaces() -> None:
    """Install a filter under which unshare is refused, as containers do."""
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    refuse, allow = (6, 0, 0, 0x50000 | errno.EPERM), (6, 0, 0, 0x7FFF0000)
    program = [_LOAD_NUMBER, (0x15, 0, 1, _UNSHARE), refuse, allow]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *i) for i in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    kernel.prctl(kernel.PR_SET_SECCOMP, 2, ctypes.addressof(header))


def without_landlock() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    hide_landlock()


def tiers(_: int) -> dict[str, str]:
    """Return what each tier that may be asked for comes to."""
    answers = {}
    for asked in ("T0", "T1", "T2"):
        try:
            answers[asked] = choose_tier(asked)
        except SandboxUnavailable as exc:
            answers[asked] = str(exc)
    return answers


def test_without_landlock_only_t0_is_given_and_only_when_asked_for() -> None:
    def inside(pid: int) -> dict[str, str]:
        without_landlock()
        return tiers(pid)

    answers = run_outside(inside)
    assert answers["T0"] == "T0"
    for tier in ("T1", "T2"):
        assert f"{tier}: this machine reaches T0; run `hotloop doctor`" in answers[tier]


def test_without_namespaces_t1_is_given_and_t2_refused(needs_t1: None) -> None:
    def inside(pid: int) -> tuple[dict[str, str], list[str]]:
        refuse_namespaces()
        return tiers(pid), list(probe().missing)

    answers, missing = run_outside(inside)
    assert (answers["T0"], answers["T1"]) == ("T0", "T1")
    assert "T2: this machine reaches T1; run `hotloop doctor`" in answers["T2"]
    assert any("T2: expected private namespaces" in line and "sysctl" in line for line in missing)


def test_a_container_with_one_user_keeps_uid_0_and_says_so(needs_t2: None) -> None:
    """As rootless containers have it: root of a user namespace that maps nobody else."""
    text = "import json; from hotloop.sandbox import probe; print(json.dumps(probe().to_json()))"
    done = subprocess.run(
        ["unshare", "-Ur", sys.executable, "-c", text],
        capture_output=True, text=True, check=False, env=_environment({}),
    )  # fmt: skip
    if done.stderr.startswith("unshare"):
        pytest.skip(done.stderr)
    found = json.loads(done.stdout)
    assert found["best_tier"] in ("T1", "T2")
    kept = [line for line in found["missing"] if line.startswith("user: uid ")]
    assert len(kept) == 1
    assert "does not exist in this user namespace, so uid 0 stays" in kept[0]


def states(**found: object) -> dict[str, checks.Check]:
    return {check.name: check for check in checks.isolation({**SOUND, **found})}


def test_doctor_says_what_a_poor_machine_lacks() -> None:
    sound = states()
    assert {check.state for check in sound.values()} == {"ok"}
    gap = "Landlock: not enabled; use Linux 5.13+ and add landlock to lsm= at boot"
    old = states(best_tier="T0", landlock_abi=0, missing=[gap], open={})
    assert old["isolation"].state == "missing"
    assert "no Landlock" in old["isolation"].found
    assert gap in (old["isolation"].mend or "")
    assert "runs are refused" in (old["isolation"].mend or "")
    container = states(best_tier="T1", user_namespaces=False, open={"T1": []})
    assert container["isolation"].state == "ok"
    assert (container["user namespaces"].state, container["attacks"].found) == (
        "limited", "refused at T1",
    )  # fmt: skip


@pytest.mark.parametrize(("tier", "state"), [("T1", "missing"), ("T2", "limited")])
def test_doctor_says_which_attack_got_through(tier: str, state: str) -> None:
    check = states(open={"T1": [], "T2": [], tier: ["read_file"]})["attacks"]
    assert (check.state, check.found) == (state, f"read_file at {tier}")
    assert "selftest" in (check.mend or "")


def test_doctor_attacks_the_cage_of_this_machine(needs_t1: None) -> None:
    found = {check.name: check for check in checks.isolation()}
    assert found["attacks"].state == "ok"
    assert "T1" in found["attacks"].found


def command(*words: str, poor: str = "", **how: object) -> subprocess.CompletedProcess[str]:
    """Run hotloop in a process that was made poor first."""
    here = str(Path(__file__).parent)
    text = (
        f"import sys; sys.path.insert(0, {here!r}); import test_poor_machines as poor; "
        f"{poor or 'pass'}; from hotloop.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", text, *words],
        capture_output=True, text=True, check=False, timeout=110, **how,
    )  # type: ignore[call-overload,no-any-return]  # fmt: skip


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [x for x in done.stderr.splitlines() if x.startswith("hotloop: ")]
    assert done.stderr.splitlines()[-1] == line
    return line


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    (tmp_path / "problem.py").write_text(PROBLEM)
    return tmp_path


SEARCH = ("optimize", "problem.py", "--device", "cpu", "--budget", "5s")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("poor", "words", "reached"),
    [
        ("poor.without_landlock()", (), "T0"),
        ("poor.refuse_namespaces()", ("--min-isolation", "T2"), "T1"),
    ],
)
def test_the_command_refuses_in_one_line_and_leaves_no_run(
    problem: Path, poor: str, words: tuple[str, ...], reached: str
) -> None:
    done = command(*SEARCH, *words, poor=poor, cwd=problem)
    assert f"this machine reaches {reached}" in one_line(done)
    assert sorted(os.listdir(problem)) == ["problem.py"]


@pytest.mark.slow
def test_a_full_temporary_folder_is_one_line(problem: Path) -> None:
    disk = problem / "disk"
    disk.mkdir()
    prefix = ["unshare", "-Urm", "sh", "-c", FULL, str(disk)]
    if subprocess.run([*prefix, "true"], cwd=problem, capture_output=True, check=False).returncode:
        pytest.skip("no mount in a user name space here")
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "hotloop", *SEARCH, "--out", "/dev/shm/none/run"],
        capture_output=True, text=True, check=False, cwd=problem,
        env=_environment({"TMPDIR": "/tmp"}),
    )  # fmt: skip
    line = one_line(done)
    assert "expected a temporary folder" in line
    assert "free some space, or set TMPDIR" in line


@pytest.mark.slow
def test_a_home_that_cannot_be_written_hinders_nothing(problem: Path) -> None:
    """/sys/kernel takes no file, from root either."""
    done = subprocess.run(
        [sys.executable, "-m", "hotloop", "verify", "problem.py", "kernel.py", "--device", "cpu",
         "--json"],
        capture_output=True, text=True, check=False, cwd=_with_kernel(problem),
        env=_environment({"HOME": "/sys/kernel"}), timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "PASSED"


def _with_kernel(folder: Path) -> Path:
    (folder / "kernel.py").write_text(
        "import torch\nimport triton\nimport triton.language as tl\n\n\n"
        "@triton.jit\ndef relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
        "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
        "    x = tl.load(x_ptr + at, mask=at < n)\n"
        "    tl.store(y_ptr + at, tl.maximum(x, 0.0), mask=at < n)\n\n\n"
        "class ModelNew(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        y = torch.empty_like(x)\n"
        "        relu[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)\n"
        "        return y\n"
    )
    return folder


def _environment(changes: Mapping[str, str]) -> dict[str, str]:
    source = os.path.dirname(hotloop.__path__[0])
    return {**os.environ, "PYTHONPATH": source, **changes}
