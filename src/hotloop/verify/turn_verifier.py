"""TurnVerifier: a judge that shares its GPU with those of other runs of the same suite.

Wraps a verifier on this machine. `load` and `verify` are done in a turn, `build` is not, and a
verification has its kernel compiled before it asks for its turn. While it waits the run's clock
stands: the wall clock of a budget is what a run would take with a GPU of its own. So it does while
a judge that was dropped for a neighbour's sake loads its problem again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TypeVar

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Verifier
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import (
    ConfigError,
    DeviceLost,
    InfraError,
    ProblemError,
    SandboxUnavailable,
    ToolMissing,
)
from hotloop.verify.turns import Turns

_NO_ROOM = re.compile(
    r"(?<!illegal )(?<!shared )memory|\b(does|do) not fit\b|CUBLAS_STATUS_(ALLOC|NOT_INIT)",
    re.IGNORECASE,
)
"""How a judge says that memory ran out. Where it means another thing, a load is lost."""
OOM = "oom_gpu"

T = TypeVar("T")


class Judge(Verifier, Protocol):
    """A verifier whose judge is on this machine, and can be watched and ended."""

    def is_alive(self, within_s: float) -> bool:
        """Whether the judge answers beside its work."""

    def abandon(self) -> None:
        """End the judge, from any thread; the next `verify` starts another."""


class Stop(Protocol):
    """How a user asks a run to end."""

    @property
    def draining(self) -> bool:
        """Whether nothing further should start."""

    @property
    def now(self) -> bool:
        """Whether to stop at once."""


Refuse = Callable[[Candidate, Problem, Tier], Verdict | None]
"""Returns the verdict on a candidate that is refused without a judge; None: it is to be judged."""


class TurnVerifier:
    """Implements `core.protocols.Verifier` round another one, one turn at a time."""

    def __init__(self, judge: Judge, turns: Turns, stop: Stop, *, refuse: Refuse) -> None:
        """Take a place at a GPU; `close` leaves it.

        Args:
            judge: what works in the turns.
            turns: the GPU's.
            stop: ends waits: all of them at once, or when draining all but those of a final tier.
            refuse: what needs no turn.
        """
        self._judge, self._turns, self._stop, self._refuse = judge, turns, stop, refuse
        self._guest = turns.enter(judge.abandon)
        self._drops_seen = 0
        self._settled: set[str] = set()
        """Candidates that had their verdict without a turn."""
        self._paused: Callable[[], AbstractContextManager[None]] = nullcontext
        self._problem: Problem | None = None
        self.waited_s = 0.0
        """Real seconds that its calls have waited for their turns."""

    def pause_by(self, paused: Callable[[], AbstractContextManager[None]]) -> None:
        """Wait inside of `paused()` from now on: it stops the run's clock."""
        self._paused = paused

    def needs_no_turn(self, candidate: Candidate) -> None:
        """A candidate that was built is not verified: nothing waits for the GPU with it."""
        self._settled.add(candidate.id)  # its build may end later
        self._turns.not_ready(self._guest, candidate.id)

    def load(self, problem: Problem) -> ProblemInfo:
        """Load the problem in a turn. See `core.protocols.Verifier`.

        Raises:
            TurnGivenUp: the run was stopped before its turn came.
        """
        self._problem = problem
        with self._turn(None, None):
            return self._load(problem)

    def build(self, candidate: Candidate) -> None:
        """Compile ahead, beside whatever the GPU does."""
        try:
            self._judge.build(candidate)
        except InfraError:
            if not self._was_dropped:
                raise
            # `verify` has it built by the next judge.
        if candidate.id not in self._settled and self._refused(candidate, Tier.FAST) is None:
            self._turns.ready(self._guest, candidate.id)

    def verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        """Verify in a turn what is not refused without one. See `core.protocols.Verifier`.

        Raises:
            TurnGivenUp: the run was stopped before its turn came.
        """
        refused = self._refused(candidate, tier)
        if refused is not None:
            return refused
        self._compile(candidate)
        with self._turn(candidate.id, tier) as turn:
            verdict = self._crowded_once(lambda: self._verify(candidate, tier), _ran_out)
            turn.has_verdict = True
        return verdict

    def is_alive(self, within_s: float) -> bool:
        """Whether the judge answers; one that waits for its turn is not asked."""
        return not self._turns.has_turn(self._guest) or self._judge.is_alive(within_s)

    def abandon(self) -> None:
        """End a judge that does not answer, and its turn with it: others may work."""
        self._judge.abandon()
        self._turns.take_back(self._guest)

    def close(self) -> None:
        """Leave the GPU and end the judge. Idempotent."""
        self._turns.leave(self._guest)
        self._judge.close()
        self._turns.take_back(self._guest)

    @property
    def _was_dropped(self) -> bool:
        """Whether the judge was dropped for a neighbour and has not loaded again."""
        return self._guest.drops != self._drops_seen

    def _refused(self, candidate: Candidate, tier: Tier) -> Verdict | None:
        if self._problem is None:
            raise ConfigError("expected `load` before any candidate")
        return self._refuse(candidate, self._problem, tier)

    def _compile(self, candidate: Candidate) -> None:
        """Wait for the compiler before the turn. What fails here fails there, and is told there."""
        if self._guest.holds_judge:
            try:
                self._judge.build(candidate)
            except InfraError:
                return

    def _load(self, problem: Problem) -> ProblemInfo:
        """Load the problem, alone on the GPU where it lacked memory."""
        guest, turns = self._guest, self._turns
        turns.make_room(guest)
        info = self._crowded_once(lambda: self._timed_load(problem), _lacked_room)
        guest.io_bytes = info.io_bytes
        turns.make_room(guest)
        return info

    def _timed_load(self, problem: Problem) -> ProblemInfo:
        began_s = time.monotonic()
        info = self._judge.load(problem)
        self._turns.loaded(self._guest, time.monotonic() - began_s)
        self._drops_seen = self._guest.drops
        return info

    def _verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        guest = self._guest
        if self._was_dropped and self._problem is not None:
            with self._paused():  # a neighbour caused it
                self._load(self._problem)
        self._turns.make_room(guest)
        guest.holds_judge = True  # one that ended by itself is started again there
        try:
            return self._judge.verify(candidate, tier)
        except (ToolMissing, SandboxUnavailable):
            raise
        except InfraError:
            guest.holds_judge = False
            raise

    def _crowded_once(self, work: Callable[[], T], lacked: Callable[[T], bool]) -> T:
        """Do it, and once more alone where memory ran out while neighbours kept some."""
        try:
            found = work()
        except DeviceLost:
            raise
        except (InfraError, ProblemError) as exc:
            if _NO_ROOM.search(str(exc)) is None or not self._turns.clear(self._guest):
                raise
            self._judge.abandon()  # whatever it still keeps
            self._guest.holds_judge = False
            return work()
        if lacked(found) and self._turns.clear(self._guest):
            return work()
        return found

    @contextmanager
    def _turn(self, candidate_id: str | None, tier: Tier | None) -> Iterator[_Turn]:
        began_s = time.monotonic()
        try:
            with self._paused():
                ticket = self._turns.wait(self._guest, candidate_id, lambda: self._gives_up(tier))
        finally:
            self.waited_s += time.monotonic() - began_s
        turn = _Turn()
        try:
            yield turn
        finally:
            self._turns.end(ticket, is_verdict=turn.has_verdict)

    def _gives_up(self, tier: Tier | None) -> bool:
        return self._stop.now or (self._stop.draining and tier is not Tier.FINAL)


class _Turn:
    """What came of a turn."""

    has_verdict = False


def _ran_out(verdict: Verdict) -> bool:
    """Whether a candidate ran out of memory, or a check of it lacked some."""
    if verdict.evidence is not None and verdict.evidence.kind == OOM:
        return True
    return any(_NO_ROOM.search(why) for why in verdict.checks_skipped.values())


def _lacked_room(info: ProblemInfo) -> bool:
    """Whether a load went without something because there was no memory for it."""
    return any(_NO_ROOM.search(why) for why in (*info.missing_baselines.values(), *info.notes))
