"""What a watcher of a run knows: the state that events add up to.

Pure bookkeeping between the engine's events and whatever shows them; it prints nothing and reads no
clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hotloop.cli.wording import has_actions
from hotloop.core.attempt import Attempt
from hotloop.core.event import Event
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Verdict
from hotloop.engine import StopReason

ASKING = "asking"
"""The phase of an attempt whose model call is under way."""


@dataclass(slots=True)
class Progress:
    """The run so far. Feed it every event; attempts are kept by id."""

    info: ProblemInfo | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)
    phase: dict[int, str] = field(default_factory=dict)
    """`asking`, `started`, `building` or `verifying` for each attempt without a verdict."""
    best: Attempt | None = None
    final: dict[int, Verdict] = field(default_factory=dict)
    """Verdicts of the final tier by attempt id."""
    spent_s: float = 0.0
    limit_s: float | None = None
    spent_tokens: int | None = 0
    """None: a call did not say how many."""
    spent_usd: float | None = 0.0
    """None: the price of a call is unknown."""
    waiting: tuple[str, ...] = ()
    """Files that await an answer from outside which this session does not wait for."""
    warnings: list[str] = field(default_factory=list)
    stopped: str | None = None

    def take(self, event: Event) -> None:
        """Take in one event; kinds that say nothing about the run's state are ignored."""
        payload = event.payload
        match event.kind:
            case "setup":
                self.info = payload["info"]
            case "asking" | "started" | "building" | "verifying":
                self._follow(payload["attempt"], event.kind)
            case "waiting":
                self.waiting = tuple(dict.fromkeys((*self.waiting, *payload["waiting"])))
            case "finished":
                self._follow(payload["attempt"], None)
            case "best":
                self.best = payload["attempt"]
            case "final":
                self.final[payload["attempt"].id] = payload["verdict"]
                self.phase.pop(payload["attempt"].id, None)
            case "budget":
                self.spent_s, self.limit_s = payload["spent_s"], payload["limit_s"]
                self.spent_tokens = payload.get("spent_tokens", self.spent_tokens)
                self.spent_usd = payload.get("spent_usd", self.spent_usd)
            case "warning":
                self.warnings.append(payload["message"])
            case "stopped":
                self.stopped = _stop_line(payload["reason"], payload.get("message"))

    def _follow(self, attempt: Attempt, phase: str | None) -> None:
        self.attempts[attempt.id] = attempt
        if phase is None:
            self.phase.pop(attempt.id, None)
        else:
            self.phase[attempt.id] = phase

    @property
    def calls_in_flight(self) -> int:
        """How many model calls are under way."""
        return sum(1 for phase in self.phase.values() if phase == ASKING)

    @property
    def has_costs(self) -> bool:
        """Whether a model call has cost something, or may have."""
        return self.spent_tokens != 0 or self.spent_usd != 0

    @property
    def has_actions(self) -> bool:
        """Whether attempts come of one another: a model, or a starting kernel."""
        return has_actions(self.attempts.values())

    @property
    def is_timed(self) -> bool:
        """Whether the device is one on which time means something."""
        return self.info is not None and self.info.device == "cuda"


def _stop_line(reason: str, detail: str | None) -> str:
    # A failure's message is the error, which is shown as the command's last line.
    return reason if detail is None or reason == StopReason.FAILED else f"{reason}: {detail}"
