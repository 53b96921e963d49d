"""The A/A control: a session in which a program differs from itself claims nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hotloop.worker.interleave import CONTROL, controlled
from hotloop.worker.performance import Timing


def session(control_ms: Iterator[float], seen: list[list[str]]) -> Callable[[Any], Any]:
    """Return a session in which every baseline takes 2 ms, and its control what comes next."""

    def measure(calls: dict[str, Callable[[], Any]]) -> Any:
        seen.append(list(calls))
        ms = dict.fromkeys(calls, 2.0) | {"candidate": 1.0}
        if CONTROL in calls:
            ms[CONTROL] = next(control_ms)
        sides = {name: Timing([value] * 10) for name, value in ms.items()}
        return sides, {name: [[value] * 2] * 5 for name, value in ms.items()}

    return measure


CALLS = {"eager": lambda: None, "compile": lambda: None}
MS = {"eager": 3.0, "compile": 2.0}


def test_a_quiet_session_is_measured_once_and_its_control_is_noted() -> None:
    seen: list[list[str]] = []
    sides, rounds = controlled(session(iter([1.99]), seen), CALLS, MS)
    assert seen == [["eager", "compile", CONTROL]]
    assert set(sides) == set(rounds) == {"candidate", "eager", "compile"}
    found = sides["candidate"].checks["control"]
    assert found["baseline"] == "compile"
    assert found["ratio"] == pytest.approx(2.0 / 1.99)
    assert found["tries"] == 1
    assert sides["candidate"].doubts == []


def test_a_disturbed_session_is_measured_again_as_a_whole() -> None:
    seen: list[list[str]] = []
    sides, _ = controlled(session(iter([2.1, 2.0]), seen), CALLS, MS)
    assert len(seen) == 2
    assert sides["candidate"].checks["control"]["tries"] == 2
    assert sides["candidate"].checks["control"]["holds"]
    assert sides["candidate"].doubts == []


@pytest.mark.parametrize("again_ms", [2.1, 1.9])
def test_one_that_stays_disturbed_claims_nothing(again_ms: float) -> None:
    sides, _ = controlled(session(iter([2.1, again_ms]), []), CALLS, MS)
    candidate = sides["candidate"]
    assert not candidate.checks["control"]["holds"]
    assert len(candidate.doubts) == 1
    assert "compile timed against itself" in candidate.doubts[0]
    assert candidate.described_checks()["doubts"] == candidate.doubts


def test_without_baselines_there_is_no_ratio_to_doubt() -> None:
    seen: list[list[str]] = []
    sides, _ = controlled(session(iter([]), seen), {}, {})
    assert seen == [[]]
    assert sides["candidate"].described_checks() == {}


def test_the_quickest_baseline_is_the_control_beside_its_double() -> None:
    seen: list[list[str]] = []
    ms = {"eager": 1.0, "compile": 2.0}
    sides, _ = controlled(session(iter([2.0]), seen), CALLS, ms)
    assert seen == [["compile", "eager", CONTROL]]
    assert sides["candidate"].checks["control"]["baseline"] == "eager"
