"""Another prompt in the place of one that waits in vain: nobody has answered it, and it is wrong.

It is wrong once the final tier has refused what it shows as correct. The files of both change
before the journal has the call of the new one, so the new one is announced first: a session that
is killed in between leaves a prompt in the folder that the next session knows as its own, and goes
on with. No other prompt is touched: runs may share a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.core.attempt import Asked, Proposal
from hotloop.core.finals import FINAL_NOTE, refusals
from hotloop.core.model import CallKey, Prompt
from hotloop.core.problem import ProblemInfo
from hotloop.core.protocols import Store
from hotloop.core.record import from_json, to_json
from hotloop.prompts.prompt_writer import PromptWriter, RenderedPrompt

NOTE = "successor"
"""Kind of the note that announces a prompt: `attempt`, `of` (the id of the prompt in whose place it
comes), `prompt`, `asked`, and `refused`, the candidates that the final tier had refused by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Where prompts lie that somebody else finds and answers."""

    withdraw: Callable[[Prompt, CallKey, Prompt], bool]
    """Takes a prompt back that nobody has answered, for another in its place; False: it stays."""
    holds: Callable[[Prompt, CallKey], bool]
    """Whether a prompt lies there, or a reply to it does."""


class Renewal:
    """Replaces prompts. Safe to use from several threads, one for each proposal."""

    def __init__(self, post: Post, prompts: PromptWriter, store: Store) -> None:
        """Take over what earlier sessions of the run have announced."""
        self._post = post
        self._prompts = prompts
        self._store = store

    def renewed(
        self, info: ProblemInfo, proposal: Proposal, sent: RenderedPrompt
    ) -> RenderedPrompt:
        """Return what was sent, or what takes its place.

        An answer that is there counts, whatever it answers.

        Raises:
            EndpointDown: the folder cannot be used any more.
        """
        sent = self._taken_over(proposal, sent)
        fresh = self._prompts.outdated(info, proposal)
        if fresh is None:
            return sent
        self._announce(proposal, sent, fresh)
        if not self._post.withdraw(sent.prompt, self._prompts.key(proposal.id), fresh.prompt):
            return sent
        self._prompts.note(proposal, fresh)
        self._store.note("warning", {"message": _told(proposal)})
        return fresh

    def _taken_over(self, proposal: Proposal, sent: RenderedPrompt) -> RenderedPrompt:
        """Return what a session that was killed laid in the place of what was sent, if one did."""
        key = self._prompts.key(proposal.id)
        for note in reversed(self._announced(proposal, sent)):
            prompt = from_json(Prompt, note["prompt"])
            if self._post.holds(prompt, key):
                found = RenderedPrompt(prompt=prompt, asked=from_json(Asked, note["asked"]))
                self._prompts.note(proposal, found, refused=note["refused"])
                told = [warning["message"] for warning in self._store.notes("warning")]
                if _told(proposal) not in told:
                    self._store.note("warning", {"message": _told(proposal)})
                self._prompts.awaits(proposal, found)
                return found
        return sent

    def _announce(self, proposal: Proposal, sent: RenderedPrompt, fresh: RenderedPrompt) -> None:
        earlier = self._announced(proposal, sent)
        if earlier and from_json(Prompt, earlier[-1]["prompt"]) == fresh.prompt:
            return
        note = {"attempt": proposal.id, "of": sent.prompt.id, "prompt": to_json(fresh.prompt)}
        refused = sorted(refusals(self._store.notes(FINAL_NOTE)))
        self._store.note(NOTE, note | {"asked": to_json(fresh.asked), "refused": refused})

    def _announced(self, proposal: Proposal, sent: RenderedPrompt) -> list[Mapping[str, Any]]:
        return [
            note
            for note in self._store.notes(NOTE)
            if (note["attempt"], note["of"]) == (proposal.id, sent.prompt.id)
        ]


def _told(proposal: Proposal) -> str:
    return (
        f"attempt {proposal.id}: the final tier has refused a kernel that its prompt showed as "
        "correct; nobody had answered it, another prompt takes its place"
    )
