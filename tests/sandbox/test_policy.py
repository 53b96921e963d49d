"""The two cages that ship: what they open, what they limit, and that the worker uses them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop.sandbox import candidate_cage, lane_cage
from hotloop.sandbox.policy import CANDIDATE_LIMITS, LANE_LIMITS, UNPRIVILEGED_UID


def test_a_lane_has_no_gpu_and_smaller_limits() -> None:
    lane, candidate = lane_cage("T1", "/nowhere"), candidate_cage("T1", "/nowhere", gpu=1)
    assert (lane.gpu, candidate.gpu) == (None, 1)
    assert not [p for p in lane.write_paths if "nvidia" in p]
    assert "/dev/nvidia1" in candidate.write_paths
    assert "/dev/nvidia0" not in candidate.write_paths
    assert (lane.limits, candidate.limits) == (LANE_LIMITS, CANDIDATE_LIMITS)
    assert lane.limits.data_bytes < candidate.limits.data_bytes


def test_each_gpu_has_a_user_of_its_own() -> None:
    uids = [candidate_cage("T1", "/nowhere", gpu=n).drop_uid for n in (0, 1)]
    root = os.geteuid() == 0
    assert uids == ([UNPRIVILEGED_UID, UNPRIVILEGED_UID + 1] if root else [None, None])


def test_packages_of_pythonpath_are_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/some/packages")
    assert "/some/packages" in candidate_cage("T1", "/nowhere", gpu=None).read_paths
    monkeypatch.setenv("PYTHONPATH", "")
    assert "/some/packages" not in candidate_cage("T1", "/nowhere", gpu=None).read_paths


@pytest.mark.slow
def test_the_worker_gives_these_cages(tmp_path: Path) -> None:
    from hotloop.worker.workroom import LANE_LIMITS as LANE_LIMITS_OF_WORKER
    from hotloop.worker.workroom import Workroom

    room = Workroom("cpu", tier="T1", gpu=None)
    try:
        folder = room.folder("candidate")
        given = room.candidate_cage(folder)
    finally:
        room.close()
    assert given == candidate_cage("T1", str(folder), gpu=None)
    assert LANE_LIMITS_OF_WORKER == LANE_LIMITS
