"""Parts and Session: what the stations of the loop share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hotloop.core.attempt import RunSpec
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Generator, Store, Strategy, Verifier
from hotloop.core.space import Space
from hotloop.engine.evaluation import HEARTBEAT_S
from hotloop.engine.limits import Meter
from hotloop.engine.outage import FIRST_WAIT_S
from hotloop.engine.reporter import Reporter
from hotloop.engine.result import StopReason
from hotloop.engine.stop import StopFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the loop is wired from. The caller opens and closes them."""

    generator: Generator
    strategy: Callable[[Space, int], Strategy]
    """Makes a strategy for a space and a seed."""
    verifier: Verifier
    store: Store
    lanes: int = 2
    """Builds that may run beside a verification."""
    calls: int = 4
    """Model calls that may be under way at a time; prompts that await an answer from outside
    count as well."""
    heartbeat_s: float = HEARTBEAT_S
    """Real seconds between two questions to a judge whether it is still there."""
    closes: bool = False
    """Whether the search ends with what is known: no call, no verification, no waiting, but the
    final tier for what was found."""
    outage_s: float = FIRST_WAIT_S
    """Real seconds until an endpoint that answered before and is down is asked again, at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sitting of a run, from the loaded problem to the last verdict."""

    parts: Parts
    spec: RunSpec
    problem: Problem
    info: ProblemInfo
    meter: Meter
    reporter: Reporter
    clock: Callable[[], float]
    stop: StopFlag
    set_apart: list[str] = field(default_factory=list)
    """Candidates that the machine failed at too often since it last judged one."""

    @property
    def has_final(self) -> bool:
        """Whether there is a final tier: only where there is a GPU to time on."""
        return self.spec.device != "cpu"

    def why_stop(self) -> StopReason | None:
        """Return why no further verification may start; None when one may."""
        if self.stop.draining:
            return StopReason.INTERRUPTED
        if self.parts.closes:
            return StopReason.CLOSED
        return None if self.meter.allows_fast() else StopReason.WALL

    def why_no_call(self, in_flight: int) -> StopReason | None:
        """Return why no model call may start beside `in_flight` others; None when one may."""
        meter = self.meter
        # The clock stands while only answers from outside are awaited: they fit any time left.
        if not self.parts.generator.is_outside and not meter.allows_call():
            return StopReason.WALL
        if not meter.allows_tokens(in_flight):
            return StopReason.TOKENS
        return None if meter.allows_usd(in_flight) else StopReason.USD

    def call_deadline_s(self) -> float | None:
        """Return the seconds that a call may take from now; None waits without end."""
        return None if self.parts.generator.is_outside else self.meter.call_deadline_s()
