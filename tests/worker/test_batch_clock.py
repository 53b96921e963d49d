"""Batches timed from outside: wrong graphs, claims of nothing, values that were seen before."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.batch_clock import BATCH_MS, FRESH_BATCHES, BatchClock, more_repeats
from hotloop.worker.evaluation import Failed

N_SETS = 4


@dataclass
class Process:
    """A process whose outputs are right for the values of its last run, or of its capture."""

    call_ms: float = 0.0
    can_capture: bool = True
    graph_is_right: bool = True
    loop_is_right: bool = True
    seed: int = 0
    is_graph: bool = False
    answered: int | None = None
    hand_over_ms: float = 0.2
    """What each batch takes beside its calls, the empty one too."""
    now_s: float = 0.0
    """A clock that only this process moves: what else the machine does takes no time of it."""
    log: list[str] = field(default_factory=list)

    def batch(self, *, repeats: int = 1, capture: bool = False) -> dict[str, Any]:
        self.spend(self.hand_over_ms)
        if capture:
            self.log.append("capture")
            self.is_graph = self.can_capture
            self.answered = self.seed  # launches that escape the capture run now
        elif repeats:
            self.log.append(f"run {repeats}")
            self.spend(repeats * N_SETS * self.call_ms)
            if self.graph_is_right if self.is_graph else self.loop_is_right:
                self.answered = self.seed
        return {"graph": self.is_graph}

    def spend(self, ms: float) -> None:
        self.now_s += ms / 1e3

    def loop(self) -> None:
        self.log.append("loop")
        self.is_graph = False

    def fill(self) -> list[int]:
        self.seed += 1
        return [self.seed]

    def check(self, seeds: list[int]) -> None:
        if seeds != [self.answered]:
            evidence = Evidence(kind="timed_call", message="wrong")
            raise Failed(Status.INCORRECT_NUMERICAL, Stage.PERFORMANCE, evidence)

    def clock(self) -> BatchClock:
        parts = (self.batch, self.loop, self.fill, self.check)
        return BatchClock(*parts, N_SETS, now_s=lambda: self.now_s)


def test_a_graph_that_is_right_stays() -> None:
    process = Process()
    process.clock().capture()
    assert process.log == ["capture", "run 1"]
    assert process.is_graph


def test_a_graph_that_launches_escape_is_dropped_and_the_loop_stands() -> None:
    process = Process(graph_is_right=False)
    process.clock().capture()
    assert process.log == ["capture", "run 1", "loop", "run 1"]
    assert not process.is_graph
    assert process.clock().call_ms(BATCH_MS) >= 0.0


@pytest.mark.parametrize("can_capture", [True, False])
def test_a_loop_that_is_wrong_counts(can_capture: bool) -> None:
    process = Process(can_capture=can_capture, graph_is_right=False, loop_is_right=False)
    with pytest.raises(Failed, match="wrong"):
        process.clock().capture()


def test_a_batch_is_as_long_as_the_wall_clock_needs() -> None:
    process = Process(call_ms=1.0)
    assert process.clock().call_ms(1.0) == pytest.approx(1.0)
    assert process.log == ["run 1", "run 8", "run 8"]  # the best of two of one length


def test_a_claim_of_nothing_does_not_make_batches_of_minutes() -> None:
    process = Process(call_ms=1.0)
    assert process.clock().call_ms(1e-9) == pytest.approx(1.0)
    assert sum(int(entry.removeprefix("run ")) for entry in process.log) <= 40


def test_a_long_call_is_not_repeated() -> None:
    process = Process(call_ms=2.0)
    assert process.clock().call_ms(BATCH_MS) == pytest.approx(2.0)
    assert process.log == ["run 1", "run 1"]


@pytest.mark.parametrize(("hand_over_ms", "left_ms"), [(0.0, 0.0), (0.9, 0.0), (5.0, 4.0)])
def test_no_more_than_waking_both_sides_is_taken_off(hand_over_ms: float, left_ms: float) -> None:
    process = Process(call_ms=2.0, hand_over_ms=hand_over_ms)
    assert process.clock().call_ms(BATCH_MS) == pytest.approx(2.0 + left_ms / N_SETS)


def test_the_clock_is_that_of_the_wall() -> None:
    """As long as the calls took at least, on a machine that is as busy as it likes."""
    process = Process()
    process.spend = lambda ms: time.sleep(ms / 1e3)  # type: ignore[method-assign]
    process.call_ms = 1.0
    clock = BatchClock(process.batch, process.loop, process.fill, process.check, N_SETS)
    assert clock.call_ms(1.0) >= 0.7


def test_batches_grow_to_the_length_that_is_wanted() -> None:
    assert more_repeats(1, 3.0, 100) == 10
    assert more_repeats(1, 3.0, 4) == 4
    assert more_repeats(2, 1e9, 100) == 3
    assert more_repeats(1, -0.5, 100) == 100  # all of it was the hand-over


def test_one_batch_of_new_values_is_enough_where_it_bears_the_claim_out() -> None:
    process = Process(call_ms=1.0)
    assert process.clock().fresh_call_ms(1.0) == pytest.approx(1.0)
    assert process.log == ["run 1"]


def test_a_claim_that_new_values_do_not_bear_out_is_looked_at_again() -> None:
    process = Process(call_ms=1.0)
    assert process.clock().fresh_call_ms(0.01) == pytest.approx(1.0)
    assert process.log == ["run 1"] * FRESH_BATCHES
