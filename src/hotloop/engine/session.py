"""Parts and Session: what the stations of the loop share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hotloop.core.attempt import RunSpec
from hotloop.core.problem import ProblemInfo
from hotloop.core.protocols import Generator, Store, Strategy, Verifier
from hotloop.core.space import Space
from hotloop.engine.limits import Meter
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One sitting of a run, from the loaded problem to the last verdict."""

    parts: Parts
    spec: RunSpec
    info: ProblemInfo
    meter: Meter
    reporter: Reporter
    clock: Callable[[], float]
    stop: StopFlag

    @property
    def has_final(self) -> bool:
        """Whether there is a final tier: only where there is a GPU to time on."""
        return self.spec.device != "cpu"

    def why_stop(self) -> StopReason | None:
        """Return why no further verification may start; None when one may."""
        if self.stop.draining:
            return StopReason.INTERRUPTED
        return None if self.meter.allows_fast() else StopReason.WALL
