"""The performance stage: how fast, on inputs nobody has seen, with every output checked.

Each timed call gets new values at one of several addresses on a cold L2; its output is compared
with a trusted implementation on the same values. The candidate's own clock reading is a claim: the
judge holds its wall clock over a batch of fresh inputs beside it, and where the claim is too small
the judge's figure stands.

Between two timed calls, drawn, comes one that looks like them (`timed_conduct.py`).

Covered: every timed output, replayed or cached results, timers patched in the candidate, times that
no kernel can have (`physics_floor.py`). Not covered: a candidate that slows the baseline down by
background load (the final tier interleaves both).
"""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from hotloop.core.statistics import interquartile_range, median
from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.batch_clock import BatchClock
from hotloop.worker.evaluation import CALL_S, Evaluation, Failed
from hotloop.worker.least_time import least_time, refuse_impossible
from hotloop.worker.memory import leave_room
from hotloop.worker.timed import TimedInputs
from hotloop.worker.timed_conduct import check_timed_conduct
from hotloop.worker.timing_rules import is_launch_bound

T = TypeVar("T")

FAST_SAMPLES = 25
FAST_SECONDS = 0.4
"""Fewer samples when calls are long; at least `MIN_SAMPLES`. The correctness stage has warmed the
kernel up by then."""
MIN_SAMPLES = 5
WARMUP_CALLS = 1
AGREEMENT = 0.8
"""A claim below this share of the judge's figure is not believed. A back-to-back batch draws more
power than single cold calls, and an H200 clocks up to 12 % lower then."""
HAND_OVER_SLACK_MS = 0.003
MAX_KERNELS = 4096
WALL = "wall"
"""Name of the judge's own clock in `Timing.timer`; no process below it may claim it."""


@dataclass(slots=True)
class Timing:
    """Samples of one side, in milliseconds."""

    samples: list[float] = field(default_factory=list)
    timer: str = "cupti"
    wall_check_ms: float | None = None
    peak_memory_bytes: int | None = None
    kernels: tuple[str, ...] = ()
    checks: dict[str, Any] = field(default_factory=dict)
    """What other clocks and the control said, as JSON values."""
    doubts: list[str] = field(default_factory=list)
    """Why no ratio to these samples may be claimed; empty when one may."""

    @property
    def median_ms(self) -> float:
        """Median of the samples."""
        return median(self.samples)

    def described_checks(self) -> dict[str, Any]:
        """Return the checks with the doubts among them, as JSON values."""
        return self.checks | ({"doubts": list(self.doubts)} if self.doubts else {})

    @property
    def spread_ms(self) -> float:
        """Interquartile range of the samples."""
        return interquartile_range(self.samples)


class CandidateTimer:
    """Times one evaluation on the timed inputs of its problem."""

    def __init__(self, evaluation: Evaluation, inputs: TimedInputs) -> None:
        self._evaluation = evaluation
        self._inputs = inputs
        self._sets: Iterator[int] = itertools.cycle(range(min(4, len(evaluation.board.sets))))
        self.calls_checked = 0

    def start(self) -> None:
        """Write the timed state and warm up.

        Raises:
            Failed: a call failed or was wrong.
        """
        self._evaluation.board.write_state(self._inputs.draw)
        self._evaluation.board.hide_inputs()  # those of the calls before
        torch.cuda.synchronize()
        leave_room()
        self._evaluation.prepare()
        for _ in range(WARMUP_CALLS):
            self.sample(Timing())

    def sample(self, timing: Timing) -> None:
        """Time one call on new inputs, check its output, add the sample."""
        index = next(self._sets)
        self._inputs.redraw()
        self._evaluation.board.write_inputs(index, self._inputs.draw)
        torch.cuda.synchronize()
        answer = self._evaluation.timed_call(index)
        self._check(index)
        if answer.elapsed_ms <= 0:
            raise _hack(f"a timed call claimed {answer.elapsed_ms} ms")
        timing.samples.append(answer.elapsed_ms)
        timing.timer = answer.timer
        timing.peak_memory_bytes = answer.peak_memory_bytes
        timing.kernels = answer.kernels[:MAX_KERNELS]

    def measure(self) -> Timing:
        """Take the samples of the fast tier, with the judge's wall check."""
        timing = Timing()
        start = time.monotonic()
        drawn = secrets.randbelow(MIN_SAMPLES)
        while len(timing.samples) < FAST_SAMPLES:
            if len(timing.samples) == drawn:
                check_timed_conduct(self._evaluation, self._inputs, self._on_new_values)
            self.sample(timing)
            spent_s = time.monotonic() - start
            if len(timing.samples) >= MIN_SAMPLES and spent_s > FAST_SECONDS:
                break
        self.wall_check(timing)
        self._evaluation.check_alone("a timed forward", Stage.PERFORMANCE)
        self.check_floor(timing)
        timing.checks["launch_bound"] = is_launch_bound(timing.median_ms)
        return timing

    def _on_new_values(self, call: Callable[[int], T]) -> T:
        """Make a call on new inputs and check its output; return what it returns."""
        index = next(self._sets)
        self._inputs.redraw()
        self._evaluation.board.write_inputs(index, self._inputs.draw)
        torch.cuda.synchronize()
        found = call(index)
        self._check(index)
        return found

    def check_floor(self, timing: Timing) -> None:
        """Hold the figure that stands against what the device can do at all.

        Raises:
            Failed: no kernel that does the work can be so fast.
        """
        warm = timing.timer == WALL
        floor = least_time(self._inputs, timing.median_ms, warm=warm)
        timing.checks["floor"] = floor.to_json()
        refuse_impossible(timing.median_ms, floor)

    def on_fresh_sets(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request that runs every set, on new values in each; check every output.

        Raises:
            Failed: the process failed, or an output is wrong.
        """
        seeds = self._fill_sets()
        answer = self._evaluation.ask(request, CALL_S, Stage.PERFORMANCE)
        self._check_sets(seeds)
        return answer

    def wall_check(self, timing: Timing) -> None:
        """Hold the judge's clock beside the claim; replace the claim where it is too small."""
        batches = self._batches()
        batches.capture()
        wall_ms = batches.call_ms(timing.median_ms) - self._inputs.copy_out_ms
        timing.wall_check_ms = max(wall_ms, 0.0)
        believe_no_less(timing, wall_ms)

    def fresh_batch_ms(self, claimed_ms: float) -> float:
        """Return the wall time of a call where no call of a batch has values seen before.

        Raises:
            Failed: an output is wrong.
        """
        batches = self._batches()
        batches.capture()  # anew: `prepare()` may have moved what an older graph reads
        return max(batches.fresh_call_ms(claimed_ms) - self._inputs.copy_out_ms, 0.0)

    def _batches(self) -> BatchClock:
        evaluation = self._evaluation
        return BatchClock(
            batch=evaluation.batch,
            drop_graph=lambda: evaluation.ask({"op": "loop"}, CALL_S, Stage.PERFORMANCE),
            fill=self._fill_sets,
            check=self._check_sets,
            n_sets=self.n_sets,
        )

    @property
    def n_sets(self) -> int:
        """Calls of one batch."""
        return len(self._evaluation.board.sets)

    def _fill_sets(self) -> list[int]:
        """Put new values into every set, poison its outputs; return the seeds."""
        board = self._evaluation.board
        seeds = []
        for index in range(len(board.sets)):
            seeds.append(self._inputs.redraw())
            board.write_inputs(index, self._inputs.draw)
        torch.cuda.synchronize()
        leave_room()
        return seeds

    def _check_sets(self, seeds: list[int]) -> None:
        for index, seed in enumerate(seeds):
            self._inputs.redraw(seed)
            self._check(index)

    def _check(self, index: int) -> None:
        trusted = self._inputs.trusted()
        outputs = self._evaluation.board.outputs(index)
        for i, (output, expected) in enumerate(zip(outputs, trusted, strict=True)):
            if not self._inputs.is_right(i, output, expected):
                raise _wrong_when_timed(i)
        self.calls_checked += 1


def believe_no_less(timing: Timing, wall_ms: float) -> bool:
    """Let the judge's figure stand where the claim is too small; return whether it does."""
    if timing.median_ms >= AGREEMENT * wall_ms - HAND_OVER_SLACK_MS:
        return False
    timing.samples = [wall_ms]
    timing.timer = WALL
    return True


def _wrong_when_timed(index: int) -> Failed:
    text = (
        f"output{index} of a timed call is wrong although earlier checks passed: results must not "
        "depend on earlier calls, addresses or values seen before, and must not race"
    )
    return Failed(
        Status.INCORRECT_NUMERICAL, Stage.PERFORMANCE, Evidence(kind="timed_call", message=text)
    )


def _hack(text: str) -> Failed:
    return Failed(Status.REWARD_HACK, Stage.PERFORMANCE, Evidence(kind="clock", message=text))


PREPARE_CALLS = (1, 32)
"""Calls over which work done ahead is spread: once, and the layers of a model that share it."""


def speedup_with_prepare(
    latency_ms: float,
    prepare_ms: float,
    baselines_ms: Mapping[str, float],
    baseline_prepare_ms: Mapping[str, float],
) -> dict[str, dict[str, float]]:
    """Return each baseline's ratio with both sides' work ahead spread over `PREPARE_CALLS`.

    Baselines that do no work ahead are compared with theirs at 0.
    """
    ratios: dict[str, dict[str, float]] = {}
    for name, ms in baselines_ms.items():
        ahead_ms = baseline_prepare_ms.get(name, 0.0)
        ratios[name] = {
            str(n): (ms + ahead_ms / n) / (latency_ms + prepare_ms / n) for n in PREPARE_CALLS
        }
    return ratios


def describe_share(
    flops: float | None, io_bytes: int, ms: float, peaks: Mapping[str, float]
) -> float:
    """Return the share of the device's bound that `ms` reaches.

    The bound is the longer of FLOPs over the measured matmul rate of the problem's dtype and
    compulsory bytes over the measured copy rate (`peaks`, from `device.py`).
    """
    by_bytes_ms = io_bytes / (peaks["copy_gbps"] * 1e6)
    by_flops_ms = (flops or 0.0) / (peaks["matmul_tflops"] * 1e9)
    return max(by_bytes_ms, by_flops_ms) / ms
