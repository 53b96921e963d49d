"""What a watcher of a run knows: the state that events add up to.

Pure bookkeeping between the engine's events and whatever shows them; it prints nothing and reads no
clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hotloop.core.attempt import Attempt
from hotloop.core.event import Event
from hotloop.core.problem import ProblemInfo
from hotloop.core.verdict import Verdict
from hotloop.engine import StopReason


@dataclass(slots=True)
class Progress:
    """The run so far. Feed it every event; attempts are kept by id."""

    info: ProblemInfo | None = None
    attempts: dict[int, Attempt] = field(default_factory=dict)
    phase: dict[int, str] = field(default_factory=dict)
    """`started`, `building` or `verifying` for each attempt without a verdict."""
    best: Attempt | None = None
    final: dict[int, Verdict] = field(default_factory=dict)
    """Verdicts of the final tier by attempt id."""
    spent_s: float = 0.0
    limit_s: float | None = None
    warnings: list[str] = field(default_factory=list)
    stopped: str | None = None

    def take(self, event: Event) -> None:
        """Take in one event; kinds that say nothing about the run's state are ignored."""
        payload = event.payload
        match event.kind:
            case "setup":
                self.info = payload["info"]
            case "started" | "building" | "verifying":
                self._follow(payload["attempt"], event.kind)
            case "finished":
                self._follow(payload["attempt"], None)
            case "best":
                self.best = payload["attempt"]
            case "final":
                self.final[payload["attempt"].id] = payload["verdict"]
                self.phase.pop(payload["attempt"].id, None)
            case "budget":
                self.spent_s, self.limit_s = payload["spent_s"], payload["limit_s"]
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
    def is_timed(self) -> bool:
        """Whether the device is one on which time means something."""
        return self.info is not None and self.info.device == "cuda"


def _stop_line(reason: str, detail: str | None) -> str:
    # A failure's message is the error, which is shown as the command's last line.
    return reason if detail is None or reason == StopReason.FAILED else f"{reason}: {detail}"
