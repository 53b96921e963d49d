"""Where each problem of a suite stands, read from its run's own journal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hotloop.core.verdict import Verdict
from hotloop.engine import RunResult, StopReason
from hotloop.engine.result import collect, stored_result
from hotloop.errors import ForeignRun, StoreError
from hotloop.plan import BEST_FOLDER, SearchPlan
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.folder import Member, Trouble

if TYPE_CHECKING:
    from hotloop.core.protocols import Store

PROMPT_SUFFIX = ".prompt.md"


class State(StrEnum):
    """How far a problem is."""

    DONE = "done"
    """Its run has nothing left to do under the budget."""
    REPLY = "waiting for reply"
    VERDICT = "waiting for verdict"
    SKIPPED = "skipped"
    """The problem cannot be run: it is not solved."""
    FAILED = "failed"
    """The machine or the model was at fault; the same command tries again."""
    OPEN = "open"
    """Not begun, or stopped on the way; the same command goes on."""


WAITING = frozenset({State.REPLY, State.VERDICT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One problem and what its run came to so far."""

    member: Member
    state: State
    reason: str | None = None
    """Why it was skipped or failed, or why its run ended."""
    result: RunResult | None = None
    """None where the run has not begun."""

    @property
    def passed(self) -> bool:
        """Whether there is a kernel to report."""
        return self.result is not None and self.result.passed

    @property
    def best(self) -> Verdict | None:
        """The best kernel's highest verdict; None where none passed."""
        return None if self.result is None else self.result.final or self.result.fast

    @property
    def status(self) -> str | None:
        """The status of `best`, else of the last attempt; None where nothing was judged."""
        if self.best is not None:
            return self.best.status.value
        attempts = () if self.result is None else self.result.attempts
        judged = [a.verdict.status.value for a in attempts if a.verdict is not None]
        return judged[-1] if judged else None

    @property
    def speedup(self) -> tuple[str, float] | None:
        """The fastest baseline and its time over the kernel's; None where nothing was timed."""
        performance = None if self.best is None else self.best.performance
        if performance is None or not performance.speedup:
            return None
        name = min(performance.speedup, key=lambda n: performance.speedup[n])
        return name, performance.speedup[name]


def read_standing(folder: Path, member: Member, trouble: Trouble | None) -> Standing:
    """Return where the run of a problem stands.

    Args:
        folder: the run's folder; it need not exist.
        member: the problem.
        trouble: why it could not be run, where the journal does not say so.
    """
    result, damage = _read(folder)
    if trouble is not None:
        state = State.SKIPPED if trouble.skipped else State.FAILED
        reason = f"{trouble.kind}: {trouble.message}"
    elif damage is not None:
        state, reason = State.FAILED, damage
    elif result is None:
        state, reason = State.OPEN, None
    else:
        state, reason = _state(result), result.detail
    return Standing(member=member, state=state, reason=reason, result=result)


def is_finished(plan: SearchPlan) -> bool:
    """Whether a run has nothing left to do under its plan, so that it need not be opened."""
    if not (plan.folder / JOURNAL_FILE).is_file():
        return False
    try:
        with RunReader(plan.folder) as reader:
            # It reads and no more, and so does what it is given to.
            stored = stored_result(cast("Store", reader), plan.spec, closes=plan.closes)
    except ForeignRun:
        return False
    # A run that was killed after its last word has still to write its kernel down, or to take a
    # refused one away.
    return stored is not None and stored.passed == (plan.folder / BEST_FOLDER).is_dir()


def _read(folder: Path) -> tuple[RunResult | None, str | None]:
    """Return what a run came to, and what is wrong with its journal."""
    if not (folder / JOURNAL_FILE).is_file():
        return None, None
    try:
        with RunReader(folder) as reader:
            stops = reader.notes("stopped")
            last = stops[-1] if stops else {}
            reason = StopReason(last.get("reason", StopReason.INTERRUPTED))
            waiting = tuple(last.get("waiting") or ())
            found = collect(cast("Store", reader), reason, last.get("message"), waiting=waiting)
            return found, None
    except ForeignRun:
        return None, None  # killed before it began
    except StoreError as exc:
        return None, f"{type(exc).__name__}: {exc}"


def _state(result: RunResult) -> State:
    if result.reason is StopReason.WAITING:
        is_reply = any(name.endswith(PROMPT_SUFFIX) for name in result.waiting)
        return State.REPLY if is_reply else State.VERDICT
    if result.reason is StopReason.FAILED:
        return State.FAILED
    return State.OPEN if result.reason is StopReason.INTERRUPTED else State.DONE
