"""Two clocks beside CUPTI, for calls of a few microseconds. Runs where no candidate code is.

Graph slope: graphs of 16 and of 64 calls; the difference of their times over 48 is one call, and
what starting a graph costs cancels. Blocked stream: a kernel spins while calls queue up behind it,
so that the host's launch times are over when the first of them begins (NVBench's blocking kernel).
Calls take turns through all sets of buffers. Both count what lies between two launches, which CUPTI
does not: the same figures of a near-empty kernel say how much that is.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

from hotloop.worker.graph_capture import captured

SHORT_GRAPH, LONG_GRAPH = 16, 64
REPLAYS = 15
WARM_REPLAYS = 3
BLOCKED_CALLS = 50
MAX_QUEUED = 512
"""Launches: a stream takes about 1024 before the host has to wait, which would be for the spin."""
BLOCKED_SAMPLES = 7
SPIN_CYCLES = 4_000_000
"""2 ms at 2 GHz; queueing 50 launches takes about 0.2 ms of host time."""
MAX_SPIN_CYCLES = 64_000_000
EMPTY_CALLS = 15

Forward = Callable[[int], Any]
"""Launches one call on the set of that index, on torch's current stream."""


def cross_times(clock: Any, forward: Forward, n_sets: int, launches: int) -> dict[str, Any]:
    """Return milliseconds a call, and of a near-empty kernel, by all three clocks.

    Args:
        clock: this process's clock.
        forward: launches one call.
        n_sets: sets of buffers to take turns through.
        launches: kernels of one call.

    Returns:
        `graph_slope_ms`, `blocked_stream_ms`, `empty_ms`, `empty_graph_slope_ms`,
        `empty_blocked_stream_ms`; None for a slope where launches cannot be captured, and for a
        stream that could not be held.
    """
    empty_ms = _empty_ms(clock)
    clock.pause()  # its records would be part of what lies between two launches
    return {
        "graph_slope_ms": graph_slope_ms(forward, n_sets),
        "blocked_stream_ms": blocked_stream_ms(forward, n_sets, launches),
        "empty_ms": empty_ms,
        "empty_graph_slope_ms": graph_slope_ms(empty, 1),
        "empty_blocked_stream_ms": blocked_stream_ms(empty, 1, 1),
    }


def empty(_: int) -> None:
    """Launch a kernel of one thread that reads a clock and ends."""
    torch.cuda._sleep(1)


def graph_slope_ms(forward: Forward, n_sets: int) -> float | None:
    """Return the time of one more call in a graph, from graphs of two lengths."""
    short, long = (_captured(forward, n_sets, n) for n in (SHORT_GRAPH, LONG_GRAPH))
    if short is None or long is None:
        return None
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(WARM_REPLAYS + REPLAYS):
        for graph, samples in zip((short, long), times, strict=True):
            ms = _between_events(graph.replay)
            if number >= WARM_REPLAYS:
                samples.append(ms)
    difference = statistics.median(times[1]) - statistics.median(times[0])
    return max(difference, 0.0) / (LONG_GRAPH - SHORT_GRAPH)


def blocked_stream_ms(forward: Forward, n_sets: int, launches: int) -> float | None:
    """Return the time of one of many calls that were queued before the first of them began."""
    calls = max(1, min(BLOCKED_CALLS, MAX_QUEUED // max(launches, 1)))
    cycles = SPIN_CYCLES
    samples: list[float] = []
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    while len(samples) < BLOCKED_SAMPLES and cycles <= MAX_SPIN_CYCLES:
        torch.cuda._sleep(cycles)
        start.record()
        for i in range(calls):
            forward(i % n_sets)
        end.record()
        was_held = not start.query()
        torch.cuda.synchronize()
        if was_held:
            samples.append(start.elapsed_time(end) / calls)
        else:  # the host was slower than the spin: its launches would be timed
            cycles *= 2
    return statistics.median(samples) if len(samples) == BLOCKED_SAMPLES else None


def _captured(forward: Forward, n_sets: int, calls: int) -> Any:
    def work() -> None:
        for i in range(calls):
            forward(i % n_sets)

    return captured(work)  # None for a cooperative launch, say; the other clock stands


def _between_events(work: Callable[[], Any]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))


def _empty_ms(clock: Any) -> float:
    return statistics.median(
        clock.measure(lambda: empty(0))[1].elapsed_ms for _ in range(EMPTY_CALLS)
    )
