"""Fakes that stand in for a GPU, a generator, a clock and a screen.

They keep the contracts of `hotloop.core.protocols` and do no work: a whole search runs in
milliseconds. Verdicts of a fake measure nothing and must not leave a test.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.attempt import Budget, Proposal, RunSpec, Written
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.event import Event
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind
from hotloop.core.record import dumps
from hotloop.core.space import Dimension, Point, Space
from hotloop.core.verdict import (
    Correctness,
    Evidence,
    KernelResources,
    Performance,
    Stage,
    Status,
    Tier,
    Verdict,
)

Behaviour = Callable[[Point, Tier], float | Status]
"""Latency in ms of the kernel at a point, or the status with which it fails; may raise."""

SMALL_SPACE = Space(
    dimensions=(
        Dimension(name="BLOCK", choices=(16, 32, 64, 128), ordered=True),
        Dimension(name="num_warps", choices=(1, 2, 4, 8), ordered=True),
        Dimension(name="split", choices=(False, True)),
        Dimension(name="parts", choices=(2, 4), when={"split": (True,)}, ordered=True),
    ),
    starts=({"BLOCK": 64, "num_warps": 4}, {"BLOCK": 32}),
)
"""48 points, one conditional dimension, two starting points."""


def small_latency_ms(point: Point, tier: Tier) -> float | Status:
    """Behave like a small kernel: 0.5 ms at best; blocks of 128 with 1 warp do not compile."""
    block, warps = int(point["BLOCK"]), int(point["num_warps"])
    if block == 128 and warps == 1:
        return Status.COMPILE_ERROR
    latency_ms = 0.5 + abs(block - 64) / 64 + abs(warps - 8) / 8
    return latency_ms + (0.25 * int(point["parts"]) if point["split"] else 0.1)


def make_problem(name: str = "fake/copy", source: str = "# nothing to compute\n") -> Problem:
    """Return a problem that nothing loads."""
    return Problem(name=name, kind=ProblemKind.NATIVE, source=source)


def make_spec(problem: Problem, *, device: str = "cuda", budget: Budget | None = None) -> RunSpec:
    """Return what a run over the fakes was asked to do."""
    return RunSpec(
        problem_id=problem.id,
        problem_name=problem.name,
        generator="fake",
        strategy="random",
        device=device,
        language="triton",
        budget=budget or Budget(),
        seed=0,
    )


class FakeClock:
    """A monotonic clock that moves when it is told to."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._mutex = threading.Lock()

    def __call__(self) -> float:
        """Return the seconds since it was made."""
        with self._mutex:
            return self._now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._mutex:
            self._now_s += seconds


class FakeGenerator:
    """Writes one candidate for each point of a space."""

    name = "fake"
    is_outside = False

    def __init__(self, space: Space = SMALL_SPACE) -> None:
        self._space = space

    def space(self, info: ProblemInfo) -> Space:
        """Return the space it was made with."""
        return self._space

    def needs_call(self, proposal: Proposal) -> bool:
        """Return False: no model is asked."""
        return False

    def generate(
        self, info: ProblemInfo, proposal: Proposal, *, deadline_s: float | None = None
    ) -> Written:
        """Return a candidate whose pins are the point."""
        return Written(candidate=fake_candidate(proposal.point))

    def cancel(self, proposal_id: int) -> None:
        """Do nothing: no call takes time."""


def fake_candidate(point: Point) -> Candidate:
    """Return a candidate whose pins are the point; another one for another point."""
    return Candidate(
        language="triton",
        sources=(SourceFile(path="kernel.py", text=f"# {dumps(point)}\n"),),
        pins=point,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds by which a fake verifier moves the fake clock."""

    load_s: float = 10.0
    fast_s: float = 1.0
    final_s: float = 8.0


@dataclass(slots=True, kw_only=True)
class FakeVerifier:
    """Judges by a latency model instead of a GPU. Builds take no time on the fake clock."""

    clock: FakeClock = field(default_factory=FakeClock)
    behaviour: Behaviour = small_latency_ms
    device: str = "cuda"
    costs: Costs = field(default_factory=Costs)
    on_load: Callable[[], None] = lambda: None
    """Called at the start of each load."""
    on_build: Callable[[Candidate], None] = lambda candidate: None
    """Called in the lane's thread at the start of a build."""
    on_verify: Callable[[Candidate, Tier], None] = lambda candidate, tier: None
    """Called at the start of a verification."""
    calls: list[tuple[str, str]] = field(default_factory=list)
    """What was asked so far: ("build" | "fast" | "final", candidate id)."""

    def load(self, problem: Problem) -> ProblemInfo:
        """Return facts about nothing."""
        self.on_load()
        self.clock.advance(self.costs.load_s)
        return ProblemInfo(
            problem_id=problem.id,
            device=self.device,
            inputs=(),
            outputs=(),
            parameters=(),
            graph=None,
            attention=None,
            flops=None,
            io_bytes=0,
            rankable=True,
        )

    def build(self, candidate: Candidate) -> None:
        """Record the call."""
        self.calls.append(("build", candidate.id))
        self.on_build(candidate)

    def verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        """Return the verdict that the behaviour gives for the candidate's pins."""
        self.calls.append((tier.value, candidate.id))
        self.on_verify(candidate, tier)
        is_fast = tier is Tier.FAST
        self.clock.advance(self.costs.fast_s if is_fast else self.costs.final_s)
        return fake_verdict(
            self.behaviour(candidate.pins, tier), candidate.id, tier=tier, device=self.device
        )

    def close(self) -> None:
        """Do nothing: there is no process to end."""

    def verified(self, tier: Tier) -> list[str]:
        """Return the ids of the candidates verified at a tier, in order."""
        return [candidate_id for call, candidate_id in self.calls if call == tier.value]


@dataclass(slots=True, kw_only=True)
class StoppableVerifier(FakeVerifier):
    """A fake whose judge can be stopped in its work, as SIGSTOP does, and goes on when told."""

    gone_on: threading.Event = field(default_factory=threading.Event)
    """Cleared: a verification does not come back, and the judge gives no sign of life."""
    abandoned: int = 0
    """How often the judge was given up; that lets it go on, and answer too late."""

    def __post_init__(self) -> None:
        self.gone_on.set()

    def verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        """Return the verdict, once the judge goes on."""
        verdict = FakeVerifier.verify(self, candidate, tier)
        self.gone_on.wait()
        return verdict

    def is_alive(self, within_s: float) -> bool:
        """Whether the judge goes on within so many seconds."""
        return self.gone_on.wait(within_s)

    def abandon(self) -> None:
        """Let what was under way come to its end."""
        self.abandoned += 1
        self.gone_on.set()


def fake_verdict(
    outcome: float | Status, candidate_id: str, *, tier: Tier = Tier.FAST, device: str = "cuda"
) -> Verdict:
    """Return a verdict: PASSED with a latency in ms (registers on `cpu`), or a failure."""
    if isinstance(outcome, Status):
        return Verdict(
            status=outcome,
            stage=Stage.COMPILE if outcome is Status.COMPILE_ERROR else Stage.CORRECTNESS,
            message="a fake failure",
            candidate_id=candidate_id,
            problem_id="fake",
            tier=tier,
            device=device,
            evidence=Evidence(kind="fake", message="a fake failure"),
        )
    on_gpu = device == "cuda"
    performance = Performance(
        latency_ms=outcome, spread_ms=0.01, samples=100, timer="cuda_event", l2="cold"
    )
    resources = KernelResources(
        name="fake", registers=min(255, 16 + round(outcome * 32)), spill_bytes=0, num_warps=4
    )
    return Verdict(
        status=Status.PASSED,
        stage=Stage.PERFORMANCE if on_gpu else Stage.CORRECTNESS,
        message="a fake success",
        candidate_id=candidate_id,
        problem_id="fake",
        tier=tier,
        device=device,
        correctness=Correctness(cases=(), deterministic=True),
        resources=(resources,),
        performance=performance if on_gpu else None,
    )


class RecordingListener:
    """Keeps every event it hears."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        """Keep an event."""
        self.events.append(event)

    def kinds(self) -> list[str]:
        """Return the kinds heard so far, in order."""
        return [event.kind for event in self.events]

    def payloads(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the payloads of one kind, in order."""
        return [event.payload for event in self.events if event.kind == kind]
