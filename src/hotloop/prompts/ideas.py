"""Ideas before code: one call for a run, made by the first draft that wants one, shared by all.

Ideas and what they cost are a note of the store, so that a run that goes on has the same ones and
pays once; a try that failed is another, so that it is paid for on the books and not repeated for
ever. The call belongs to no attempt, and no draft is charged for it. Drafts never wait for it
longer than for half of the time that they have, and go on without an idea where there is none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.model import CallKey, Finish, Prompt, Reply
from hotloop.core.protocols import Store
from hotloop.core.record import to_json
from hotloop.errors import HotloopError
from hotloop.prompts.calling import Answer, Caller, Until
from hotloop.prompts.idea_list import parse_ideas

NOTE = "ideas"
"""Ends the asking: the ideas, or why there will be none."""
FAILED_NOTE = "ideas_failed"
"""A call that gave none; `was_cut` where its draft gave it up, which is no failure of the call.
Both kinds have `cost`, that of this one sending."""
MAX_FAILED_TRIES = 2
"""A session makes one try; after as many the run goes on without ideas."""
SHARE_OF_DEADLINE = 0.5
TOO_LONG = "no idea: the call for ideas took too long"
POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one draft gets."""

    idea: str | None = None
    note: str = ""
    """Why it has none."""
    was_cut: bool = False
    """The draft was given up while it waited."""


@dataclass(slots=True)
class _Round:
    """One asking, which the draft `leader` makes and others wait for."""

    leader: int
    done: threading.Event = field(default_factory=threading.Event)
    error: HotloopError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    ideas: tuple[str, ...] = ()
    missing: str = ""
    """Why there are none."""


class IdeaBook:
    """The ideas of one run. Safe to use from several threads."""

    def __init__(self, caller: Caller, store: Store, key: CallKey) -> None:
        self._caller = caller
        self._store = store
        self._key = key
        self._mutex = threading.Lock()
        self._round: _Round | None = None
        noted = store.notes(NOTE)
        failed = store.notes(FAILED_NOTE)
        self._known = _from_note(noted[-1]) if noted else None
        self._failed_tries = sum(not note["was_cut"] for note in failed)

    def known(self, index: int) -> str | None:
        """Return an idea without asking for it; None where it is not known."""
        with self._mutex:
            ideas = self._known.ideas if self._known else ()
        return ideas[index] if 0 <= index < len(ideas) else None

    def cancel(self, proposal_id: int) -> None:
        """Give up the call if this draft makes it; another draft then makes it anew."""
        with self._mutex:
            leads = self._round is not None and self._round.leader == proposal_id
        if leads:
            self._caller.model.cancel(self._key)

    def take(
        self,
        proposal_id: int,
        index: int,
        *,
        prompt: Callable[[], Prompt],
        deadline_s: float | None,
        is_cut: Callable[[], bool],
    ) -> Taken:
        """Return idea `index`, from 0, for a draft; ask for all of them if nobody did.

        Args:
            proposal_id: the draft.
            index: beyond the ideas that there are, the draft gets none.
            prompt: renders the prompt that asks for them.
            deadline_s: seconds that the draft has.
            is_cut: whether the draft was given up meanwhile.

        Raises:
            Pending: the ideas come from outside and nobody waits for them.
            ProviderError: no call can be made.
        """
        until = Until(None if deadline_s is None else deadline_s * SHARE_OF_DEADLINE)
        while not is_cut():
            with self._mutex:
                if self._known is not None:
                    return _taken(self._known, index)
                leads = self._round is None
                current = self._round = self._round or _Round(proposal_id)
            if leads:
                if self._lead(current, prompt, until).was_cut:
                    return Taken(was_cut=True)
            elif not _wait(current, until, is_cut):
                return Taken(note=TOO_LONG, was_cut=is_cut())
            elif current.error is not None:
                raise current.error
        return Taken(was_cut=True)

    def _lead(self, current: _Round, prompt: Callable[[], Prompt], until: Until) -> Answer:
        known: _Known | None = None
        try:
            answer = self._caller.call(prompt(), self._key, until.remaining_s())
            known = self._settle(answer, current.leader)
            return answer
        except HotloopError as exc:
            current.error = exc
            raise
        finally:
            with self._mutex:
                self._known = known
                self._round = None
            current.done.set()

    def _settle(self, answer: Answer, leader: int) -> _Known | None:
        """Write down what came of a call; return None where another draft asks again."""
        paid = {"attempt": leader, "cost": to_json(answer.spent)}
        if answer.was_cut:
            self._store.note(FAILED_NOTE, {**paid, "missing": answer.failure, "was_cut": True})
            return None
        if answer.reply is not None:
            ideas, missing = _read(answer.reply)
        else:
            ideas, missing = (), answer.failure
            self._failed_tries += 1  # one thread leads at a time
            if self._failed_tries < MAX_FAILED_TRIES:  # a session that goes on asks again
                self._store.note(FAILED_NOTE, {**paid, "missing": missing, "was_cut": False})
                return _Known(missing=missing)
        self._store.note(NOTE, {**paid, "ideas": ideas, "missing": missing})
        return _Known(ideas=ideas, missing=missing)


def _read(reply: Reply) -> tuple[tuple[str, ...], str]:
    if reply.finish is Finish.REFUSAL:
        return (), "the model declined to give ideas"
    ideas = tuple(parse_ideas(reply.text))
    return ideas, "" if ideas else "the reply with the ideas held no numbered list"


def _taken(known: _Known, index: int) -> Taken:
    if 0 <= index < len(known.ideas):
        return Taken(idea=known.ideas[index])
    missing = known.missing or f"idea {index + 1} of {len(known.ideas)} does not exist"
    return Taken(note=f"no idea: {missing}")


def _wait(current: _Round, until: Until, is_cut: Callable[[], bool]) -> bool:
    """Wait for a round; return whether it is done."""
    while not current.done.wait(POLL_S):
        if is_cut() or until.remaining_s() == 0.0:
            return False
    return True


def _from_note(note: Any) -> _Known:
    return _Known(ideas=tuple(note["ideas"]), missing=str(note["missing"]))
