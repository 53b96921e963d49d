"""What an untrusted process answers is a claim: read with care, limited in time, and outvoted."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from hotloop.worker.claims import MalformedAnswer, TimedCall, number, number_or_none, objects
from hotloop.worker.final import stands_corrected
from hotloop.worker.patience import Patience
from hotloop.worker.performance import AGREEMENT, WALL, Timing, believe_no_less

HONEST = {"elapsed_ms": 1.5, "timer": "cupti", "kernels": ["add"], "peak_memory_bytes": 4096}


def test_an_honest_answer_is_read() -> None:
    assert TimedCall.read(HONEST) == TimedCall(1.5, "cupti", ("add",), 4096)
    assert objects({"outputs": [{"shape": [1]}]}, "outputs") == [{"shape": [1]}]
    assert objects({}, "kernels") == []
    assert number_or_none({"compile_s": 2}, "compile_s") == 2.0


@pytest.mark.parametrize(
    "change",
    [
        {"elapsed_ms": json.loads("NaN")}, {"elapsed_ms": "1"}, {"elapsed_ms": True},
        {"elapsed_ms": 10**400}, {"timer": "wall"}, {"timer": ["cupti"]}, {"kernels": 3},
        {"peak_memory_bytes": json.loads("Infinity")}, {"peak_memory_bytes": None},
    ],
)  # fmt: skip
def test_a_malformed_answer_is_no_answer(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedAnswer):
        TimedCall.read(HONEST | change)


@pytest.mark.parametrize("value", [None, 5, "x", [1], {"a": 1}])
def test_what_is_no_list_of_objects_is_no_answer(value: Any) -> None:
    with pytest.raises(MalformedAnswer, match="outputs"):
        objects({"outputs": value}, "outputs")


def test_numbers_that_are_none() -> None:
    with pytest.raises(MalformedAnswer, match="prepare_ms"):
        number({}, "prepare_ms")
    assert number_or_none({"registers": "many"}, "registers") is None


def test_patience_is_shared_by_all_answers() -> None:
    patience = Patience(30.0)
    assert patience.limit_s(0.1) == 0.1
    assert patience.limit_s(60) == 30.0
    for _ in range(2):
        before_s = patience.limit_s(60)
        with patience.waiting():
            time.sleep(0.03)
        assert 0 < patience.limit_s(60) <= before_s - 0.03
    spent = Patience(0.01)
    with spent.waiting():
        time.sleep(0.02)
    assert spent.limit_s(60) == 0


def test_a_claim_below_the_judges_clock_is_replaced() -> None:
    honest, liar = Timing([0.95, 1.0, 1.05]), Timing([0.1, 0.1, 0.1])
    assert not believe_no_less(honest, 1.0)
    assert (honest.median_ms, honest.timer) == (1.0, "cupti")
    assert believe_no_less(liar, 1.0)
    assert (liar.samples, liar.timer) == ([1.0], WALL)


def test_a_claim_that_shrinks_only_at_the_final_tier_is_replaced_too() -> None:
    fast = Timing([1.0], wall_check_ms=1.0)
    assert not stands_corrected(Timing([AGREEMENT]), fast)
    late = Timing([0.5])
    assert stands_corrected(late, fast)
    assert (late.samples, late.timer) == ([1.0], WALL)


def test_who_was_not_believed_at_the_fast_tier_is_not_at_the_final_one() -> None:
    fast = Timing([2.0], timer=WALL, wall_check_ms=2.0)
    candidate = Timing([1.9, 1.9])
    assert stands_corrected(candidate, fast)
    assert (candidate.samples, candidate.timer) == ([2.0], WALL)
