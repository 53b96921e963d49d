"""A judge attacks its own cages before anything runs in them: an intact one starts, a hole ends it.

Rules are switched off in a sacrificial process in throw-away namespaces only, as in test_weakened.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import weaken
from ways import machine

import hotloop
from hotloop.errors import SandboxUnavailable
from hotloop.sandbox import (
    CageSpec,
    Tier,
    candidate_cage,
    landlock,
    lane_cage,
    processes,
    require_sound,
    run_canaries,
)
from hotloop.worker.workroom import Workroom

HOLES = {
    "read_file": ("landlock: files",),
    "write_outside": ("landlock: files",),
    "leave_file": ("landlock: files",),
    "signal_parent": ("landlock: signals and abstract names",),
    "connect_tcp": ("landlock: TCP", "seccomp: sockets", "seccomp: connections"),
    "limit_parent": ("seccomp: own process only",),
    "pin_parent": ("seccomp: own process only",),
    "renice_parent": ("seccomp: priorities",),
    "read_environment": ("capabilities",),
    "trace_parent": ("landlock: all", "seccomp: other processes"),
}
"""Each attack that the start makes, and the rules without which it succeeds."""
AIMED_AT_EQUALS = ("pin_parent", "renice_parent", "trace_parent")
"""These reach nobody who has more rights than the attacker, whatever the cage does."""
IN_DEFAULT_RUN = ("read_file", "limit_parent")
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


@pytest.fixture
def cages(tmp_path: Path) -> tuple[CageSpec, CageSpec]:
    """Both cages as they ship, for the user that runs the tests."""
    if machine().best_tier < Tier.NAMESPACES:
        pytest.skip(f"no throw-away namespaces here: {'; '.join(machine().missing)}")
    folder = str(tmp_path / "attacked")
    both = (candidate_cage("T1", folder, gpu=None), lane_cage("T1", folder))
    return replace(both[0], drop_uid=None), replace(both[1], drop_uid=None)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of this test's own, so that it can be opened to the cage."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def _params() -> list[object]:
    slow = [pytest.mark.slow]
    return [pytest.param(a, marks=[] if a in IN_DEFAULT_RUN else slow) for a in HOLES]


@pytest.mark.parametrize("attack", _params())
def test_a_weakened_policy_is_refused_by_the_attack_that_works(
    cages: tuple[CageSpec, CageSpec], attack: str
) -> None:
    boot = weaken.canary_boot(HOLES[attack], plain=attack in AIMED_AT_EQUALS)
    with pytest.raises(SandboxUnavailable, match=rf"let through: .*{attack}.*hotloop doctor"):
        require_sound(*cages, boot=boot)


def test_an_intact_policy_is_not(cages: tuple[CageSpec, CageSpec]) -> None:
    require_sound(*cages, boot=weaken.canary_boot(()))
    require_sound(*cages, boot=weaken.canary_boot((), plain=True))
    require_sound(*cages)


def test_a_hole_in_one_of_two_cages_is_found(
    cages: tuple[CageSpec, CageSpec], temporary: Path
) -> None:
    candidate, lane = cages
    open_lane = replace(lane, read_paths=(*lane.read_paths, str(temporary)))
    assert run_canaries(candidate, lane) == ()
    assert run_canaries(candidate, open_lane) == ("read_file",)
    assert run_canaries(open_lane, candidate) == ("read_file",)


def test_what_an_older_kernel_cannot_hold_is_named_not_refused(
    cages: tuple[CageSpec, CageSpec],
) -> None:
    """Landlock refuses signals to the same user since ABI 6; the probe says so for older ones."""
    signals = weaken.canary_boot(HOLES["signal_parent"])
    require_sound(*cages, boot=signals, abi=5)
    assert any("signals reach other processes" in gap for gap in landlock.gaps(5))
    with pytest.raises(SandboxUnavailable, match="let through: signal_parent;"):
        require_sound(*cages, boot=signals, abi=6)
    files = weaken.canary_boot(HOLES["read_file"])
    with pytest.raises(SandboxUnavailable, match="read_file"):
        require_sound(*cages, boot=files, abi=1)


def test_every_attack_of_the_start_has_a_hole_that_lets_it_through() -> None:
    from hotloop.sandbox.canary_attacks import ATTACKS

    assert set(HOLES) == set(ATTACKS)


@pytest.mark.parametrize("tier", ["T1", "T2"])
def test_a_sound_judge_starts(cages: object, temporary: Path, tier: str) -> None:
    room = Workroom("cpu", tier=tier, gpu=None)
    try:
        assert len(list(temporary.iterdir())) == 1
    finally:
        room.close()
    assert list(temporary.iterdir()) == []


def test_a_judge_with_a_hole_does_not_start_and_leaves_nothing(
    cages: object, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(processes.descendants(os.getpid()))
    monkeypatch.setenv("PYTHONPATH", str(temporary))  # candidates may read what it names
    with pytest.raises(SandboxUnavailable, match="let through: read_file;"):
        Workroom("cpu", tier="T1", gpu=None)
    assert list(temporary.iterdir()) == []
    assert len(processes.descendants(os.getpid())) == before
    room = Workroom("cpu", tier="T0", gpu=None)  # which promises nothing
    room.close()


@pytest.mark.slow
def test_the_command_ends_with_one_line_and_3(
    cages: object, temporary: Path, tmp_path: Path
) -> None:
    (tmp_path / "problem.py").write_text(PROBLEM)
    source = os.path.dirname(hotloop.__path__[0])
    command = ["optimize", "problem.py", "--device", "cpu", "--budget", "20s", "--out", "run"]
    done = subprocess.run(
        [sys.executable, "-m", "hotloop", *command],
        env={**os.environ, "PYTHONPATH": f"{source}:{temporary}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    complaints = [x for x in done.stderr.splitlines() if x.startswith("hotloop: ")]
    assert len(complaints) == 1, done.stderr
    assert "read_file" in complaints[0]
    assert "Traceback" not in done.stderr
