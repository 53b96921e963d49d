"""The final tier's timing: candidate and baselines interleaved on one GPU.

Rounds run through all sides in one order, then in the reverse order (ABBA for two sides), a block
of calls each, with the same flush, the same fresh values and the same kind of clock. A speed-up is
a ratio of medians with a bootstrap interval over the rounds.

Where the forward consists of recorded kernel launches only, they are replayed by a process without
any candidate code and that is timed (`mode: replay`); otherwise the candidate's own process is
timed (`mode: host_path`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from hotloop.core.problem import ProblemKind
from hotloop.core.statistics import paired_speedup_interval
from hotloop.core.verdict import Stage, Status
from hotloop.worker.baseline_graphs import without_gaps
from hotloop.worker.cross_check import may_claim
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.graph_capture import captured
from hotloop.worker.interleave import controlled
from hotloop.worker.performance import WALL, CandidateTimer, Timing, believe_no_less
from hotloop.worker.replay import start_replay
from hotloop.worker.session import Session, primary_baselines
from hotloop.worker.timed import TimedInputs, make_clock_once
from hotloop.worker.workroom import Workroom

ROUNDS = 10
SHORT_ROUNDS = ROUNDS // 2
"""In the short final tier."""
MIN_ROUNDS, ROUNDS_S = 6, 4.0
"""After so many seconds no more than so many rounds: making values for large inputs takes longer
than the calls."""
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


def time_final(
    session: Session, room: Workroom, evaluation: Evaluation, fast: Timing, *, rounds: int = ROUNDS
) -> FinalTiming:
    """Interleave the candidate with the baselines.

    Args:
        session: the baselines and the inputs.
        room: where a replay is started.
        evaluation: the candidate, loaded and correct.
        fast: its timing at the fast tier.
        rounds: how many blocks of calls each side gets.

    Raises:
        Failed: an output was wrong.
    """
    replay, refused = start_replay(room, evaluation, fast.kernels)
    if replay is not None:
        # A replay that fails or computes something else is no fault of the candidate's: its forward
        # does more than its recorded launches say.
        try:
            return _time_one(session, replay, fast, mode="replay", rounds=rounds)
        except Failed as exc:
            if exc.status is Status.REWARD_HACK:  # the candidate's own clock would be believed
                raise
            refused = why_not_replayed(exc)
        finally:
            replay.close()
    timing = _time_one(session, evaluation, fast, mode="host_path", rounds=rounds)
    timing.replay_refused = refused
    return timing


def why_not_replayed(failed: Failed) -> str:
    """Return why a replay that was started does not count."""
    message = failed.evidence.message[:200]
    if failed.status is Status.TIMEOUT:
        return f"the replay took too long: {message}"
    return f"the replay is not what the forward computes: {message}"


def _time_one(
    session: Session, evaluation: Evaluation, fast: Timing, *, mode: str, rounds: int
) -> FinalTiming:
    assert session.timed is not None
    timer = CandidateTimer(evaluation, session.timed)
    timer.start()
    calls = {n: session.baselines[n] for n in primary_baselines(session.baselines_ms)}
    inputs, block = session.timed, _block(session, fast)
    clock = make_clock_once()
    ungapped = without_gaps(
        calls, lambda call: clock.measure(call)[1], captured,
        # Models may need all of the memory: their graphs are made only where they are needed.
        all_graphs=session.problem.kind is ProblemKind.ATTENTION,
    )  # fmt: skip
    for call in ungapped.calls.values():
        call()  # fills the allocator's cache, which a capture gives back
    sides, by_round = controlled(
        lambda c: _interleave(timer, c, inputs, block, rounds=rounds),
        ungapped.calls, session.baselines_ms | ungapped.graphs_ms,
    )  # fmt: skip
    evaluation.check_alone("a timed forward", Stage.PERFORMANCE)
    candidate = sides.pop("candidate")
    candidate.wall_check_ms = fast.wall_check_ms
    candidate.checks |= ungapped.checks()
    candidate.doubts += ungapped.doubts
    believed = mode == "replay" or not stands_corrected(candidate, fast)
    believed = may_claim(timer, candidate, mode=mode) and believed
    return FinalTiming(
        candidate=candidate,
        baselines_ms={n: t.median_ms for n, t in sides.items()},
        # An interval over claims that are not believed would be theirs, not the candidate's.
        speedup_ci=(
            {n: _interval(by_round[n], by_round["candidate"]) for n in sides} if believed else {}
        ),
        mode=mode,
        calls_checked=timer.calls_checked,
    )


def stands_corrected(candidate: Timing, fast: Timing) -> bool:
    """Hold the session's claims against the judge's clock of the fast tier's batch.

    A candidate that was not believed then is not believed now, and one that was has to go on
    claiming no less. Where it is not believed, the judge's figure replaces its samples.
    """
    if fast.timer == WALL:
        candidate.samples, candidate.timer = list(fast.samples), WALL
        return True
    return believe_no_less(candidate, fast.wall_check_ms or 0.0)


def _interval(baseline: list[list[float]], candidate: list[list[float]]) -> tuple[float, float]:
    interval = paired_speedup_interval(list(zip(baseline, candidate, strict=True)))
    return interval.low, interval.high


def may_stop(rounds_done: int, spent_s: float) -> bool:
    """Whether a session of long calls has enough rounds, as many in one order as in the other."""
    return rounds_done >= MIN_ROUNDS and rounds_done % 2 == 0 and spent_s > ROUNDS_S


def _block(session: Session, fast: Timing) -> int:
    slowest_ms = max(fast.median_ms, *session.baselines_ms.values(), 0.0)
    return BLOCK_CALLS if slowest_ms < MAX_SECONDS_A_CALL * 1e3 else 1


def _interleave(
    timer: CandidateTimer,
    calls: dict[str, Callable[[], Any]],
    inputs: TimedInputs,
    block: int,
    *,
    rounds: int,
) -> tuple[dict[str, Timing], dict[str, list[list[float]]]]:
    order = ["candidate", *calls]
    sides = {name: Timing() for name in order}
    by_round: dict[str, list[list[float]]] = {name: [] for name in order}
    start = time.monotonic()
    for number in range(rounds):
        if may_stop(number, time.monotonic() - start):
            break
        for name in order if number % 2 == 0 else reversed(order):
            timing = sides[name]
            before = len(timing.samples)
            for _ in range(block):
                if name == "candidate":
                    timer.sample(timing)
                else:
                    _sample_baseline(calls[name], inputs, timing)
            by_round[name].append(timing.samples[before:])
    return sides, by_round


def _sample_baseline(call: Callable[[], Any], inputs: TimedInputs, timing: Timing) -> None:
    inputs.redraw()
    torch.cuda.synchronize()
    _, span = make_clock_once().measure(call)
    timing.samples.append(span.elapsed_ms)
    timing.timer = span.timer
