"""Baselines whose launches leave the GPU idle are timed as CUDA graphs.

A baseline is Python calls; on a GPU that has been drained, what lies between their launches counts
as its time. A candidate may launch faster, and its gain would be one of launching. Where a
baseline's span is longer than its kernels took, a graph of it is timed too, and the smaller figure
counts. Where asked, the others are timed as graphs too: reported beside the kernels' times, these
figures change nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.worker.clock import Span
from hotloop.worker.timing_rules import leaves_gaps

Call = Callable[[], Any]
SAMPLES = 5


@dataclass(slots=True)
class Ungapped:
    """Baselines as they are to be timed."""

    calls: dict[str, Call] = field(default_factory=dict)
    graphs_ms: dict[str, float] = field(default_factory=dict)
    """Of those that are timed as graphs."""
    found: dict[str, dict[str, float | None]] = field(default_factory=dict)
    """Of those with gaps: `span_ms`, `busy_ms`, `graph_ms`."""
    replayed_ms: dict[str, float | None] = field(default_factory=dict)
    """Of all as graphs, where that was asked for; None: it cannot be captured."""
    doubts: list[str] = field(default_factory=list)

    def checks(self) -> dict[str, Any]:
        """Return what a verdict's `timing_checks` say of this, as JSON values."""
        found = {"baseline_gaps": self.found, "graph_replayed_ms": self.replayed_ms}
        return {name: value for name, value in found.items() if value}


def without_gaps(
    calls: Mapping[str, Call],
    measure: Callable[[Call], Span],
    capture: Callable[[Call], Any],
    *,
    all_graphs: bool = False,
) -> Ungapped:
    """Return the baselines, as graphs where that is faster than launching one by one.

    Args:
        calls: the baselines by name; each has run before.
        measure: times one call.
        capture: returns a graph with `replay`, or None.
        all_graphs: time every baseline as a graph as well. Each graph keeps memory of its own for
            what the baseline allocates.
    """
    chosen = Ungapped()
    for name, call in calls.items():
        chosen.calls[name] = call
        span_ms, busy_ms = _median(measure, call)
        has_gaps = leaves_gaps(span_ms, busy_ms)
        if not has_gaps and not all_graphs:
            continue
        graph = capture(call)
        graph_ms = None if graph is None else _median(measure, graph.replay)[0]
        if all_graphs:
            chosen.replayed_ms[name] = graph_ms
        if not has_gaps:
            continue
        chosen.found[name] = {"span_ms": span_ms, "busy_ms": busy_ms, "graph_ms": graph_ms}
        if graph is None or graph_ms is None:
            chosen.doubts.append(
                f"{name} leaves the GPU idle between its launches and cannot be captured in a "
                f"graph: it takes {span_ms:.5f} ms, its kernels {_shown(busy_ms)}"
            )
        elif graph_ms < span_ms:
            chosen.calls[name], chosen.graphs_ms[name] = graph.replay, graph_ms
    return chosen


def _median(measure: Callable[[Call], Span], call: Call) -> tuple[float, float | None]:
    measure(call)  # a graph's first replay uploads it
    spans = [measure(call) for _ in range(SAMPLES)]
    busy_ms = [s.busy_ms for s in spans if s.busy_ms is not None]
    span_ms = statistics.median(s.elapsed_ms for s in spans)
    return span_ms, statistics.median(busy_ms) if busy_ms else None


def _shown(ms: float | None) -> str:
    return "an unknown part of it" if ms is None else f"{ms:.5f} ms"
