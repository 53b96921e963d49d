"""The workroom: its children get the cages of the policy, one user a GPU; nothing is left of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop.errors import InfraError
from hotloop.sandbox import candidate_cage, lane_cage
from hotloop.sandbox.policy import UNPRIVILEGED_UID
from hotloop.worker.workroom import GpuAddress, Workroom


@pytest.mark.parametrize("gpu", [None, GpuAddress(1, "GPU-none")])
def test_cages_are_those_of_the_policy(gpu: GpuAddress | None) -> None:
    minor = None if gpu is None else gpu.minor
    room = Workroom("cpu", tier="T0", gpu=gpu)
    try:
        folder = room.folder("candidate")
        candidate, lane = room.candidate_cage(folder), room.lane_cage(folder)
    finally:
        room.close()
    assert candidate == candidate_cage("T0", str(folder), gpu=minor)
    assert lane == lane_cage("T0", str(folder), owner=minor)
    uid = UNPRIVILEGED_UID + (minor or 0) if os.geteuid() == 0 else None
    assert (candidate.drop_uid, lane.drop_uid) == (uid, uid)
    assert not folder.parent.exists()


def test_without_room_for_folders_the_machine_is_at_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(InfraError, match="expected room for the folders.*TMPDIR"):
        Workroom("cpu", tier="T1", gpu=None)
