"""The final tier's timing: candidate and baselines interleaved on one GPU.

Rounds run through all sides in one order, then in the reverse order (ABBA for two sides), a block
of calls each, with the same flush, the same fresh values and the same kind of clock. A speed-up is
a ratio of medians with a bootstrap interval over the rounds.

Where the forward consists of recorded kernel launches only, they are replayed by a process without
any candidate code and that is timed (`mode: replay`); otherwise the candidate's own process is
timed (`mode: host_path`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from hotloop.core.statistics import paired_speedup_interval
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.performance import CandidateTimer, Timing
from hotloop.worker.replay import start_replay
from hotloop.worker.session import Session, primary_baselines
from hotloop.worker.timed import TimedInputs, make_clock_once
from hotloop.worker.workroom import Workroom

ROUNDS = 10
BLOCK_CALLS = 5
MAX_SECONDS_A_CALL = 0.05
"""Longer calls get smaller blocks, so that a final tier ends in time."""


@dataclass(slots=True)
class FinalTiming:
    """What the interleaved session measured."""

    candidate: Timing
    baselines_ms: dict[str, float]
    speedup_ci: dict[str, tuple[float, float]]
    mode: str
    calls_checked: int
    replay_refused: str | None = None
    sides: dict[str, Timing] = field(default_factory=dict)


def time_final(
    session: Session, room: Workroom, evaluation: Evaluation, fast: Timing
) -> FinalTiming:
    """Interleave the candidate with the baselines.

    Raises:
        Failed: an output was wrong.
    """
    assert session.timed is not None
    replay, refused = start_replay(room, evaluation, fast.kernels)
    try:
        timer = CandidateTimer(replay or evaluation, session.timed)
        if replay is not None:
            refused = _try_replay(timer)
            if refused is not None:
                replay.close()
                replay = None
                timer = CandidateTimer(evaluation, session.timed)
        if replay is None:
            timer.start()
        names = primary_baselines(session.baselines_ms)
        calls = {n: session.baselines[n] for n in names}
        sides, rounds = _interleave(timer, calls, session.timed, _block(session, fast))
        candidate = sides.pop("candidate")
        candidate.wall_check_ms = fast.wall_check_ms
        if fast.timer == "wall" and replay is None:
            candidate = fast
    finally:
        if replay is not None:
            replay.close()
    return FinalTiming(
        candidate=candidate,
        baselines_ms={n: t.median_ms for n, t in sides.items()},
        speedup_ci={n: _interval(rounds[n], rounds["candidate"]) for n in sides},
        mode="replay" if replay is not None else "host_path",
        calls_checked=timer.calls_checked,
        replay_refused=refused,
        sides=sides,
    )


def _try_replay(timer: CandidateTimer) -> str | None:
    # A replay that fails or computes something else is no fault of the candidate's: its forward
    # does more than its recorded launches say.
    try:
        timer.start()
    except Failed as exc:
        return f"the replay is not what the forward computes: {exc.evidence.message[:200]}"
    return None


def _interval(baseline: list[list[float]], candidate: list[list[float]]) -> tuple[float, float]:
    interval = paired_speedup_interval(list(zip(baseline, candidate, strict=True)))
    return interval.low, interval.high


def _block(session: Session, fast: Timing) -> int:
    slowest_ms = max(fast.median_ms, *session.baselines_ms.values(), 0.0)
    return BLOCK_CALLS if slowest_ms < MAX_SECONDS_A_CALL * 1e3 else 1


def _interleave(
    timer: CandidateTimer, calls: dict[str, Callable[[], Any]], inputs: TimedInputs, block: int
) -> tuple[dict[str, Timing], dict[str, list[list[float]]]]:
    order = ["candidate", *calls]
    sides = {name: Timing() for name in order}
    rounds: dict[str, list[list[float]]] = {name: [] for name in order}
    for number in range(ROUNDS):
        for name in order if number % 2 == 0 else reversed(order):
            timing = sides[name]
            before = len(timing.samples)
            for _ in range(block):
                if name == "candidate":
                    timer.sample(timing)
                else:
                    _sample_baseline(calls[name], inputs, timing)
            rounds[name].append(timing.samples[before:])
    return sides, rounds


def _sample_baseline(call: Callable[[], Any], inputs: TimedInputs, timing: Timing) -> None:
    inputs.redraw()
    torch.cuda.synchronize()
    _, span = make_clock_once().measure(call)
    timing.samples.append(span.elapsed_ms)
    timing.timer = span.timer
