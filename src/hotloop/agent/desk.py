"""What the tools of `hotloop mcp` work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hotloop.agent.final_looks import FinalLooks
from hotloop.agent.jobs import Jobs
from hotloop.agent.runs import AgentRuns
from hotloop.agent.workspace import Workspace
from hotloop.core.attempt import Attempt
from hotloop.store.reader import RunReader
from hotloop.warm.judge import WarmJudge

DEFAULT_WAIT_S = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What the tools work with."""

    workspace: Workspace
    judge: WarmJudge
    jobs: Jobs
    runs: AgentRuns
    looks: FinalLooks
    """At held-out data, by `verify_kernel`; a run's own final checks are not counted."""
    run_table: Callable[[RunReader], str]
    """A run in words: the one of `hotloop show`."""
    find_attempt: Callable[[RunReader, int | None], Attempt]
    """An attempt by its number; the best one for None."""
    models: tuple[str, ...] = ()
    """Specs that a run's model may have, beside `agent` and `builtin`."""

    def close(self) -> None:
        """End runs and judge; both go on when they are asked for again."""
        self.runs.close()
        self.jobs.close()
        self.judge.close()
