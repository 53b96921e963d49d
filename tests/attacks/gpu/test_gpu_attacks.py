"""Attacks on a GPU: each gets its verdict in time, the GPU is proved healthy, the next one passes.

Covered: cases 50-52, 54, 55, 57 and 59 of the attack suite. Every candidate is killed with its
process, in seconds; nothing here changes a setting of the GPU or resets it.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gpu_attacks import (
    BURNS,
    BURNT_MS,
    CALL_S,
    FAULTS,
    HANGS,
    LEFT_WORK,
    OPENS,
    PRINTS,
    honest,
)

from hotloop.core.candidate import Candidate
from hotloop.core.units import GIB, MIB
from hotloop.core.verdict import Status, Tier, Verdict
from hotloop.sandbox.nvml import NoReading, read_gpu
from hotloop.verify import LocalVerifier
from hotloop.worker.gpu_health import SLACK_BYTES

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]
LATE_S = 2.0
"""A process that hangs is gone so long after its deadline at the latest."""
JUDGE_BYTES = 1 * GIB
"""By how much the judge's own caches may differ from one moment to the next."""


def verdict(judge: LocalVerifier, kernel: Candidate) -> Verdict:
    return judge.verify(kernel, Tier.FAST)


def assert_next_passes(judge: LocalVerifier) -> None:
    after = verdict(judge, honest())
    assert after.status is Status.PASSED, after.message


def looked_at(log: Path) -> int:
    """Return how often the judge has proved its GPU healthy so far."""
    return log.read_text(encoding="utf-8", errors="replace").count("the GPU is healthy after")


def used_bytes(judge: LocalVerifier) -> int:
    uuid = judge.gpus.uuid
    assert uuid is not None
    found = read_gpu(uuid)
    assert not isinstance(found, NoReading), found.reason
    return found.used_bytes


@pytest.mark.parametrize("name", HANGS)
def test_a_kernel_that_hangs_is_killed_in_time(
    attacked_judge: LocalVerifier, attack_log: Path, name: str
) -> None:
    before = looked_at(attack_log)
    found = verdict(attacked_judge, HANGS[name])
    assert found.status is Status.TIMEOUT, found.message
    assert found.evidence is not None
    assert found.evidence.kind == "timeout_gpu"
    assert CALL_S <= found.stage_s["correctness"] <= CALL_S + LATE_S
    assert looked_at(attack_log) == before + 1
    assert_next_passes(attacked_judge)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_the_candidates_alone(
    attacked_judge: LocalVerifier, attack_log: Path, name: str
) -> None:
    attack, before = FAULTS[name], looked_at(attack_log)
    found = verdict(attacked_judge, attack.candidate)
    assert found.status is attack.status, found.message
    assert found.evidence is not None
    assert found.evidence.kind == attack.kind, found.message
    assert looked_at(attack_log) == before + 1
    assert_next_passes(attacked_judge)


def test_what_leaked_comes_back(attacked_judge: LocalVerifier) -> None:
    assert_next_passes(attacked_judge)
    before = used_bytes(attacked_judge)
    found = verdict(attacked_judge, FAULTS["leaks until nothing is left"].candidate)
    assert found.status is Status.RUNTIME_ERROR, found.message
    assert used_bytes(attacked_judge) - before <= JUDGE_BYTES + SLACK_BYTES


@pytest.mark.parametrize("name", LEFT_WORK)
def test_work_left_behind_does_not_pass(attacked_judge: LocalVerifier, name: str) -> None:
    found = verdict(attacked_judge, LEFT_WORK[name])
    assert found.status is not Status.PASSED
    assert found.evidence is not None
    assert found.evidence.kind != "policy_violation", found.message  # it ran
    assert_next_passes(attacked_judge)


def test_time_burnt_behind_the_back_is_the_candidates_own(attacked_judge: LocalVerifier) -> None:
    found = verdict(attacked_judge, BURNS)
    if found.status is Status.PASSED:
        assert found.performance is not None
        assert found.performance.latency_ms > BURNT_MS / 4
    plain = verdict(attacked_judge, honest())
    assert plain.performance is not None
    assert plain.performance.latency_ms < BURNT_MS / 4


def test_a_flood_of_prints_is_cut_off(attacked_judge: LocalVerifier) -> None:
    start = time.monotonic()
    found = verdict(attacked_judge, PRINTS)
    assert time.monotonic() - start < 120.0
    if found.status is not Status.PASSED:
        assert found.evidence is not None
        assert found.evidence.kind in ("output_limit", "timeout_gpu"), found.message
        assert len(str(found.evidence.details)) < 1 * MIB
    assert_next_passes(attacked_judge)


@pytest.mark.skipif(
    len([p for p in Path("/dev").glob("nvidia[0-9]*") if p.name[6:].isdigit()]) < 2,
    reason="needs a second GPU's node",
)
def test_the_nodes_of_other_gpus_are_closed(attacked_judge: LocalVerifier) -> None:
    found = verdict(attacked_judge, OPENS)
    assert found.status is Status.PASSED, found.message


def test_an_honest_kernel_passes_and_costs_no_look(
    attacked_judge: LocalVerifier, attack_log: Path
) -> None:
    before = looked_at(attack_log)
    for _ in range(2):
        assert_next_passes(attacked_judge)
    assert looked_at(attack_log) == before
