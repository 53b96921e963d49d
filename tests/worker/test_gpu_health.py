"""The health of a GPU, decided from what was seen: every way out of suspicion, both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.core.gpu_reading import GpuProcess, GpuReading
from hotloop.core.units import GIB, MIB
from hotloop.sandbox.nvml import NoReading
from hotloop.worker.gpu_health import (
    CANARIES,
    SETTLE_S,
    SLACK_BYTES,
    Canary,
    GpuHealth,
    GpuState,
    Step,
    Suspicion,
)

OWN, DEAD, STRANGER = 100, 200, 300
BEFORE = 10 * GIB
BAD_END = Suspicion(
    why="process 200 was ended by SIGKILL", pids=frozenset({DEAD}), limit_bytes=BEFORE, now_s=50.0
)
PASSED = Canary(gbps=3000.0)


def reading(*pids: int, used_bytes: int = BEFORE, own_bytes: int | None = 0) -> GpuReading:
    """Return a reading in which the judge's process uses `own_bytes` of what is in use."""
    return GpuReading(
        uuid="GPU-1",
        name="NVIDIA H200",
        driver="580",
        total_bytes=141 * GIB,
        used_bytes=used_bytes,
        processes=tuple(
            GpuProcess(pid=pid, used_bytes=own_bytes if pid == OWN else None) for pid in pids
        ),
    )


def suspected(suspicion: Suspicion = BAD_END) -> GpuHealth:
    health = GpuHealth("GPU-1", own_pid=OWN)
    health.suspect(suspicion)
    return health


def see(health: GpuHealth, found: GpuReading | NoReading, *, after_s: float = 0.0) -> Step:
    health.saw_reading(found, now_s=BAD_END.now_s + after_s)
    return health.next_step


def test_nothing_is_looked_at_without_suspicion() -> None:
    health = GpuHealth("GPU-1", own_pid=OWN)
    assert (health.state, health.next_step) == (GpuState.HEALTHY, Step.DONE)


def test_memory_back_and_a_canary_that_passes_clear_it() -> None:
    health = suspected()
    assert health.next_step is Step.READ
    assert see(health, reading(OWN)) is Step.CANARY
    assert health.state is GpuState.SUSPECT
    health.saw_canary(PASSED)
    assert (health.state, health.next_step) == (GpuState.HEALTHY, Step.DONE)


def test_a_process_that_does_not_end_is_enough() -> None:
    health = suspected(replace(BAD_END, unreaped=(DEAD,)))
    assert health.state is GpuState.QUARANTINED
    assert "process 200 does not end" in health.message()


@pytest.mark.parametrize("is_silent", [True, False])
@pytest.mark.parametrize("after_s", [0.0, 2 * SETTLE_S])
def test_where_nvml_says_nothing_the_canary_decides(is_silent: bool, after_s: float) -> None:
    fit, broken = suspected(), suspected()
    for health in (fit, broken):
        assert see(health, NoReading("it says no", is_silent), after_s=after_s) is Step.CANARY
    fit.saw_canary(PASSED)
    assert fit.state is GpuState.HEALTHY
    for _ in range(CANARIES):
        broken.saw_canary(Canary(problem="no answer within 20 s"))
    assert broken.state is GpuState.QUARANTINED


@pytest.mark.parametrize(
    ("over_bytes", "own_bytes", "step"),
    [
        (SLACK_BYTES, 0, Step.CANARY),
        (SLACK_BYTES + 1, 0, Step.READ),
        (5 * GIB, 5 * GIB, Step.CANARY),  # the judge took it itself meanwhile
        (5 * GIB, 4 * GIB, Step.READ),
        (-3 * GIB, 0, Step.CANARY),  # the judge gave some back
    ],
)
def test_memory_has_to_come_back(over_bytes: int, own_bytes: int, step: Step) -> None:
    health = suspected()
    grown = reading(OWN, used_bytes=BEFORE + over_bytes, own_bytes=own_bytes)
    assert see(health, grown) is step


def test_memory_may_take_ten_seconds_and_no_longer() -> None:
    leaked = reading(OWN, used_bytes=BEFORE + 300 * MIB)
    health = suspected()
    assert see(health, leaked, after_s=SETTLE_S - 0.1) is Step.READ
    assert see(health, reading(OWN), after_s=SETTLE_S - 0.05) is Step.CANARY
    health = suspected()
    assert see(health, leaked, after_s=SETTLE_S) is Step.DONE
    assert "300 MiB of its memory did not come back" in health.message()


def test_a_dead_process_must_not_be_listed_any_more() -> None:
    health = suspected()
    assert see(health, reading(OWN, DEAD)) is Step.READ
    assert see(health, reading(OWN, DEAD), after_s=SETTLE_S) is Step.DONE
    assert "process 200 has ended and the driver still lists it" in health.message()


def test_numbers_of_another_namespace_are_not_believed() -> None:
    assert see(suspected(), reading(DEAD, STRANGER)) is Step.CANARY


def test_memory_says_nothing_where_somebody_else_uses_the_gpu() -> None:
    grown = BEFORE + 20 * GIB
    assert see(suspected(), reading(OWN, STRANGER, used_bytes=grown)) is Step.CANARY
    assert see(suspected(), reading(OWN, used_bytes=grown)) is Step.READ


def test_memory_says_nothing_where_nobody_can_tell_whose_it_is() -> None:
    grown = BEFORE + 20 * GIB
    for pids in ((STRANGER, DEAD), (STRANGER,), ()):  # of another namespace, or hidden
        assert see(suspected(), reading(*pids, used_bytes=grown)) is Step.CANARY
    assert see(suspected(), reading(OWN, used_bytes=grown, own_bytes=None)) is Step.CANARY
    assert see(suspected(), reading(OWN, used_bytes=grown, own_bytes=20 * GIB)) is Step.CANARY
    assert see(suspected(), reading(OWN, used_bytes=grown, own_bytes=19 * GIB)) is Step.READ


def test_without_nvml_the_canary_decides() -> None:
    health = suspected(replace(BAD_END, limit_bytes=None))
    assert health.next_step is Step.CANARY


@pytest.mark.parametrize(
    ("canary", "state"),
    [
        (PASSED, GpuState.HEALTHY),
        (Canary(problem="no answer within 20 s"), GpuState.QUARANTINED),
        (Canary(problem="cuCtxSynchronize returned 719"), GpuState.QUARANTINED),
        (Canary(problem="cuMemAlloc returned 2", has_room=False), GpuState.HEALTHY),
    ],
)
def test_the_canary_decides_at_last(canary: Canary, state: GpuState) -> None:
    health = suspected(replace(BAD_END, limit_bytes=None))
    for _ in range(CANARIES):
        health.saw_canary(canary)
    assert health.state is state


def test_one_canary_that_fails_is_no_proof_and_each_suspicion_counts_anew() -> None:
    health = suspected(replace(BAD_END, limit_bytes=None))
    for _ in range(3):
        health.saw_canary(Canary(problem="the host is busy"))
        assert (health.state, health.next_step) == (GpuState.SUSPECT, Step.CANARY)
        health.saw_canary(PASSED)
        assert health.state is GpuState.HEALTHY
        health.suspect(replace(BAD_END, limit_bytes=None))


@pytest.mark.parametrize(("gbps", "state"), [
    (400.0, GpuState.HEALTHY), (200.0, GpuState.QUARANTINED), (None, GpuState.HEALTHY),
])  # fmt: skip
def test_copies_are_held_against_the_first_ones(gbps: float | None, state: GpuState) -> None:
    health = suspected(Suspicion(why="its first test"))
    health.saw_canary(PASSED)
    health.suspect(replace(BAD_END, limit_bytes=None))
    for _ in range(CANARIES):
        health.saw_canary(Canary(gbps=gbps))
    assert health.state is state


def test_quarantine_is_for_good_and_says_what_to_do() -> None:
    health = suspected(replace(BAD_END, limit_bytes=None))
    for _ in range(CANARIES):
        health.saw_canary(Canary(problem="it hangs"))
    health.suspect(BAD_END)
    health.saw_canary(PASSED)
    assert health.state is GpuState.QUARANTINED
    text = health.message()
    assert "\n" not in text
    for part in ("GPU-1", "process 200 was ended by SIGKILL", "it hangs", "never resets",
                 "CUDA_VISIBLE_DEVICES", "same command again"):  # fmt: skip
        assert part in text


def test_what_is_seen_out_of_turn_changes_nothing() -> None:
    health = suspected()
    health.saw_canary(PASSED)
    assert health.next_step is Step.READ
    fresh = GpuHealth("GPU-1", own_pid=OWN)
    fresh.saw_reading(NoReading("hang", is_silent=True), now_s=0.0)
    fresh.saw_canary(Canary(problem="bad"))
    assert fresh.state is GpuState.HEALTHY
