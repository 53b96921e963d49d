"""Fakes of a model that writes kernels: scripted calls, a clock that runs fast, a strategy.

A call takes the seconds that its script says on `FastClock`, in a thread of its own, so that
overlap, slow calls and deadlines are real and a whole run takes a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hotloop.core.attempt import (
    FREE_ACTIONS,
    Action,
    Asked,
    Attempt,
    Outcome,
    Proposal,
    Spent,
    Written,
)
from hotloop.core.problem import ProblemInfo
from hotloop.core.space import Dimension, Point, Space
from hotloop.core.verdict import Evidence
from hotloop.errors import Pending
from hotloop.testing.fakes import FakeClock, fake_candidate

RATE = 200.0
"""Seconds of a `FastClock` in one real second: a call of a minute takes 0.3 s."""


class FastClock(FakeClock):
    """A clock that runs by itself, `rate` times as fast as the real one."""

    def __init__(self, rate: float = RATE) -> None:
        super().__init__()
        self._rate = rate
        self._zero_s = time.monotonic()

    def __call__(self) -> float:
        """Return the seconds since it was made."""
        return (time.monotonic() - self._zero_s) * self._rate

    def advance(self, seconds: float) -> None:
        """Wait until so much time has passed."""
        time.sleep(seconds / self._rate)

    def wait(self, event: threading.Event, seconds: float | None) -> bool:
        """Wait for an event; return whether it came within `seconds` of this clock."""
        return event.wait(None if seconds is None else max(0.0, seconds) / self._rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeCall:
    """What one call does."""

    seconds: float = 10.0
    """On the clock; infinite takes until it is cancelled."""
    point: Point | None = None
    """The pins of the candidate in the answer; None: there is no code in it."""
    tokens: int | None = 100
    usd: float | None = 0.01
    error: Exception | None = None
    """Raised instead of an answer, after `seconds`."""


Script = Callable[[Proposal], FakeCall]

DECLARED = Space(dimensions=(Dimension(name="num_warps", choices=(1, 2, 4, 8), ordered=True),))
"""The tunables that every fake kernel declares."""


def block_of_64(proposal: Proposal) -> FakeCall:
    """Answer after 10 s with a kernel of its own for each proposal."""
    return FakeCall(point={"BLOCK": 64, "num_warps": 4, "split": False, "by": proposal.id})


class FakeModelGenerator:
    """Writes kernels by scripted calls; `sweep` and `start` need none."""

    name = "model"

    def __init__(
        self, clock: FastClock, script: Script = block_of_64, *, is_outside: bool = False
    ) -> None:
        self.is_outside = is_outside
        self.begun: list[int] = []
        """Proposals in the order in which their calls began."""
        self.cancelled: list[int] = []
        self.deadlines_s: dict[int, float | None] = {}
        self.spans: dict[int, tuple[float, float]] = {}
        """When each call began and ended."""
        self._clock = clock
        self._script = script
        self._mutex = threading.Lock()
        self._cancels: dict[int, threading.Event] = {}

    def space(self, info: ProblemInfo) -> Space:
        """Return no schedules: a model needs none."""
        return Space(dimensions=())

    def needs_call(self, proposal: Proposal) -> bool:
        """Whether the action is one for a model."""
        return proposal.action not in FREE_ACTIONS

    def generate(
        self, info: ProblemInfo, proposal: Proposal, *, deadline_s: float | None = None
    ) -> Written:
        """Do what the script says of the proposal; a free one gives its point."""
        if not self.needs_call(proposal):
            return Written(candidate=fake_candidate(proposal.point), declared=DECLARED)
        call = self._script(proposal)
        with self._mutex:
            self.begun.append(proposal.id)
            self.deadlines_s[proposal.id] = deadline_s
            cancel = self._cancels.setdefault(proposal.id, threading.Event())
        began_s = self._clock()
        if isinstance(call.error, Pending):
            raise call.error
        is_late = deadline_s is not None and deadline_s < call.seconds
        wait_s = deadline_s if is_late else call.seconds
        is_cancelled = self._clock.wait(cancel, None if wait_s == float("inf") else wait_s)
        self.spans[proposal.id] = began_s, self._clock()
        if is_cancelled or is_late:
            return _failed("cancelled" if is_cancelled else "the deadline passed")
        if call.error is not None:
            raise call.error
        return _written(call)

    def cancel(self, proposal_id: int) -> None:
        """Let the call of this proposal end at once."""
        with self._mutex:
            self.cancelled.append(proposal_id)
            self._cancels.setdefault(proposal_id, threading.Event()).set()


def _failed(message: str) -> Written:
    return Written(
        no_code=Evidence(kind="call_failed", message=message),
        spent=Spent(calls=1, tokens=None, usd=None),
    )


def _written(call: FakeCall) -> Written:
    spent = Spent(calls=1, tokens=call.tokens, usd=call.usd, call_s=call.seconds)
    asked = Asked(template="first", template_digest="0" * 16, prompt_id="1" * 16, sees="memory")
    if call.point is None:
        no_code = Evidence(kind="no_code", message="there is no code in the answer")
        return Written(no_code=no_code, asked=asked, spent=spent)
    return Written(
        candidate=fake_candidate(call.point), declared=DECLARED, asked=asked, spent=spent
    )


class FakeModelStrategy:
    """So many drafts, each repaired or optimised once; and sweeps of what passed.

    Deterministic under the same tells.
    """

    def __init__(self, space: Space, seed: int, *, drafts: int = 4, sweeps: int = 0) -> None:
        self._drafts = drafts
        self._sweeps = sweeps
        self._next_id = 1
        self._open: dict[int, str] = {}
        self._follow: list[tuple[int, bool]] = []
        self._sweepable: list[int] = []

    def ask(self, n: int, *, free: bool = False) -> Sequence[Proposal]:
        """Return the next of its plan."""
        proposals: list[Proposal] = []
        while len(proposals) < n:
            proposal = self._free() if free else self._called()
            if proposal is None:
                break
            self._next_id += 1
            self._open[proposal.id] = proposal.action
            proposals.append(proposal)
        return proposals

    def tell(self, outcome: Outcome) -> None:
        """Follow a draft up; sweep what passed."""
        action = self._open.pop(outcome.proposal_id, None)
        if action is None:
            raise ValueError(f"proposal {outcome.proposal_id} is not open")
        self._learn(outcome.proposal_id, action, passed=outcome.verdict.passed)

    def restore(self, attempts: Sequence[Attempt]) -> None:
        """Take in earlier attempts."""
        for attempt in attempts:
            self._next_id = max(self._next_id, attempt.id + 1)
            self._drafts -= attempt.action == Action.DRAFT
            self._sweeps -= attempt.action == Action.SWEEP
            if attempt.verdict is None:
                self._open[attempt.id] = attempt.action
            else:
                self._learn(attempt.id, attempt.action, passed=attempt.verdict.passed)
            if attempt.action in (Action.REPAIR, Action.OPTIMISE):
                self._follow = [f for f in self._follow if f[0] not in attempt.parents]

    def _learn(self, attempt_id: int, action: str, *, passed: bool) -> None:
        if action == Action.DRAFT:
            self._follow.append((attempt_id, passed))
        if passed and action != Action.SWEEP:
            self._sweepable.append(attempt_id)

    def _called(self) -> Proposal | None:
        if self._drafts > 0:
            self._drafts -= 1
            return Proposal(id=self._next_id, action=Action.DRAFT)
        if not self._follow:
            return None
        parent, passed = self._follow.pop(0)
        action = Action.OPTIMISE if passed else Action.REPAIR
        return Proposal(id=self._next_id, action=action, parents=(parent,))

    def _free(self) -> Proposal | None:
        if not self._sweepable or self._sweeps <= 0:
            return None
        self._sweeps -= 1
        point = {"BLOCK": 32, "num_warps": 8, "split": False, "by": self._next_id}
        return Proposal(
            id=self._next_id, action=Action.SWEEP, parents=(self._sweepable[0],), point=point
        )
