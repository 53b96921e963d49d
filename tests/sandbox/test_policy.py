"""The two cages that ship: what they open, what they limit, and that the worker uses them."""

from __future__ import annotations

import os

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


def test_a_lane_has_the_user_of_the_gpu_it_compiles_for() -> None:
    lanes = [lane_cage("T1", "/nowhere", owner=n) for n in (None, 0, 1)]
    uids = [UNPRIVILEGED_UID, UNPRIVILEGED_UID, UNPRIVILEGED_UID + 1]
    assert [lane.drop_uid for lane in lanes] == (uids if os.geteuid() == 0 else [None] * 3)
    assert {lane.gpu for lane in lanes} == {None}
    for gpu in (0, 1):
        assert candidate_cage("T1", "/nowhere", gpu=gpu).drop_uid == lanes[gpu + 1].drop_uid


@pytest.mark.parametrize("gpu", [None, 0])
def test_no_folder_is_shared_from_one_candidate_to_the_next(gpu: int | None) -> None:
    """Device nodes and the names of its own threads are all that is writable beside its folder."""
    for cage in (candidate_cage("T1", "/nowhere", gpu=gpu), lane_cage("T1", "/nowhere", owner=gpu)):
        others = {p for p in cage.write_paths if not p.startswith("/dev/nvidia")}
        assert others <= {"/dev/null", "/proc/self/task"}
    private = set(candidate_cage("T2", "/nowhere", gpu=gpu).write_paths)
    assert ("/dev/shm" in private) == (gpu is not None)
    assert "/dev/shm" not in lane_cage("T2", "/nowhere", owner=gpu).write_paths
