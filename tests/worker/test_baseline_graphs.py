"""Baselines with idle time between their launches are timed as graphs, or doubted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hotloop.worker.baseline_graphs import Ungapped, without_gaps
from hotloop.worker.clock import Span, busy_ns


class Graph:
    """What a capture returned."""

    def replay(self) -> None:
        """Run it."""


def found(
    plain: Span, graph: Span | None, *, all_graphs: bool = False
) -> tuple[Ungapped, Callable[[], Any], Graph]:
    made, captures = Graph(), []

    def call() -> None:
        pass

    def capture(work: Callable[[], Any]) -> Graph | None:
        captures.append(work)
        return None if graph is None else made

    def measure(work: Callable[[], Any]) -> Span:
        if work == call:
            return plain
        assert graph is not None
        return graph

    chosen = without_gaps({"eager": call}, measure, capture, all_graphs=all_graphs)
    assert captures in ([], [call])
    return chosen, call, made


def span(ms: float, busy_ms: float | None) -> Span:
    return Span(ms, (), "cupti", busy_ms)


def test_a_baseline_of_back_to_back_kernels_is_timed_as_it_is() -> None:
    chosen, call, _ = found(span(1.0, 0.95), None)
    assert chosen == Ungapped(calls={"eager": call})


def test_where_asked_graphs_are_timed_that_change_nothing() -> None:
    chosen, call, _ = found(span(1.0, 0.95), span(0.9, 0.9), all_graphs=True)
    assert chosen == Ungapped(calls={"eager": call}, replayed_ms={"eager": 0.9})
    assert chosen.checks() == {"graph_replayed_ms": {"eager": 0.9}}
    chosen, call, _ = found(span(1.0, 0.95), None, all_graphs=True)
    assert chosen.replayed_ms == {"eager": None}
    assert chosen.doubts == []
    chosen, _, _ = found(span(1.0, 0.95), span(0.9, 0.9))
    assert chosen.checks() == {}


def test_a_baseline_with_gaps_is_timed_as_a_graph_once() -> None:
    chosen, _, graph = found(span(0.05, 0.02), span(0.022, 0.02), all_graphs=True)
    assert chosen.calls == {"eager": graph.replay}
    assert chosen.replayed_ms == {"eager": 0.022}
    assert set(chosen.checks()) == {"baseline_gaps", "graph_replayed_ms"}


@pytest.mark.parametrize("busy_ms", [0.02, None])
def test_a_baseline_with_gaps_is_timed_as_a_graph(busy_ms: float | None) -> None:
    chosen, _, graph = found(span(0.05, busy_ms), span(0.022, 0.02))
    assert chosen.calls == {"eager": graph.replay}
    assert chosen.graphs_ms == {"eager": 0.022}
    assert chosen.found == {"eager": {"span_ms": 0.05, "busy_ms": busy_ms, "graph_ms": 0.022}}
    assert chosen.doubts == []


def test_a_graph_that_is_no_faster_is_left() -> None:
    chosen, call, _ = found(span(0.05, 0.02), span(0.06, 0.02))
    assert chosen.calls == {"eager": call}
    assert (chosen.graphs_ms, chosen.doubts) == ({}, [])
    assert chosen.found["eager"]["graph_ms"] == 0.06


def test_a_baseline_with_gaps_that_cannot_be_captured_is_doubted() -> None:
    chosen, call, _ = found(span(0.05, 0.02), None)
    assert chosen.calls == {"eager": call}
    assert len(chosen.doubts) == 1
    assert "eager leaves the GPU idle" in chosen.doubts[0]


@pytest.mark.parametrize(
    ("periods", "expected"),
    [
        ([], 0),
        ([(10, 30)], 20),
        ([(40, 50), (10, 30)], 30),
        ([(10, 30), (20, 40)], 30),  # on two streams
        ([(10, 50), (20, 30), (60, 61)], 41),
    ],
)
def test_how_long_something_ran(periods: list[tuple[int, int]], expected: int) -> None:
    assert busy_ns(periods) == expected
