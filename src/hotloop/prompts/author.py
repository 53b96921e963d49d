"""The model generator: from a proposal to a prompt, a reply, and a candidate.

How calls are made, journaled and continued is the model's business (`hotloop.llm`), what is tried
next the strategy's, and what a prompt says that of `prompt_writer`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from hotloop.core import kill_points
from hotloop.core.attempt import FREE_ACTIONS, Action, Proposal, Written
from hotloop.core.candidate import Candidate
from hotloop.core.hopper import why_no_gluon
from hotloop.core.language import GLUON
from hotloop.core.model import CallJournal, Finish, Model, Prompt, Reply
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Store
from hotloop.core.space import Space
from hotloop.core.verdict import Evidence
from hotloop.errors import ConfigError
from hotloop.prompts import render
from hotloop.prompts.calling import CUT, Answer, Caller, Until
from hotloop.prompts.example import Examples
from hotloop.prompts.extract import NoCode, extract
from hotloop.prompts.ideas import IdeaBook, Taken
from hotloop.prompts.prompt_writer import IDEAS_ATTEMPT, PromptWriter, RenderedPrompt, Wording
from hotloop.prompts.recall import CALL_FAILED, REFUSED
from hotloop.prompts.render import Sees
from hotloop.prompts.renewal import Post, Renewal
from hotloop.prompts.said import said_note
from hotloop.prompts.starting import without_call
from hotloop.prompts.untrusted import clean, head_and_tail, one_line

REPLY_LINES, REPLY_CHARS = 240, 12_000
"""What a verdict keeps of a reply without a kernel; the journal has all of it."""
TWICE = "the call was sent twice: the first sending may have been paid too"


class ModelGenerator:
    """Asks a model for candidates. Safe to use from several threads, one for each proposal."""

    name = "model"

    def __init__(
        self,
        model: Model,
        journal: CallJournal,
        store: Store,
        problem: Problem,
        *,
        language: str,
        sees: str = "memory",
        start: Candidate | None = None,
        n_ideas: int = render.IDEAS,
        is_outside: bool = False,
        post: Post | None = None,
        notice: Callable[[], str] = lambda: "",
        examples: Examples | None = None,
    ) -> None:
        """Take over what earlier sessions of the run have asked.

        Args:
            model: who answers; journals its calls in `journal`.
            journal: finds the prompts that were sent.
            store: the run's journal.
            problem: what to compute.
            language: a name of `core.language`: what is asked for.
            sees: name of a `render.Sees` level, in lower case.
            start: the kernel that the user began with.
            n_ideas: how many ideas the call for ideas asks for.
            is_outside: whether the answers come from outside (a folder).
            post: where a prompt that nobody has answered is taken back; None where a call that was
                sent cannot be, as it may have been paid.
            notice: returns a line to be told while answers are awaited; empty: none.
            examples: where verified kernels of other problems come from; None: none are shown.

        Raises:
            ValueError: `sees` is no level.
        """
        levels = {level.name.lower(): level for level in Sees}
        if sees not in levels:
            raise ValueError(f"expected sees to be one of {', '.join(levels)}, got {sees!r}")
        self.is_outside = is_outside
        self._model = model
        self.notice = notice
        self._store = store
        self._language = language
        self._start = start
        wording = Wording(
            problem=problem,
            language=language,
            sees=levels[sees],
            n_ideas=n_ideas,
            examples=examples,
        )
        self._prompts = PromptWriter(journal, store, wording)
        self._renewal = None if post is None else Renewal(post, self._prompts, store)
        self._caller = Caller(model)
        self._ideas = IdeaBook(self._caller, store, self._prompts.key(IDEAS_ATTEMPT))
        self._cut: set[int] = set()
        self._mutex = threading.Lock()

    def space(self, info: ProblemInfo) -> Space:
        """Return an empty space: a model's candidates declare their own.

        Raises:
            ConfigError: the language is of no use on the GPU; no model was asked yet.
        """
        self._check_language(info)
        return Space(dimensions=())

    def needs_call(self, proposal: Proposal) -> bool:
        """Whether `generate` asks the model for this proposal."""
        return proposal.action not in FREE_ACTIONS

    def cancel(self, proposal_id: int) -> None:
        """Give up the call of a proposal: its `generate` returns without code.

        May be repeated: a call that is just being sent is reached by the next one.
        """
        with self._mutex:
            self._cut.add(proposal_id)
        self._ideas.cancel(proposal_id)
        self._model.cancel(self._prompts.key(proposal_id))

    def generate(
        self, info: ProblemInfo, proposal: Proposal, *, deadline_s: float | None = None
    ) -> Written:
        """Carry out one proposal.

        Raises:
            Pending: the answer comes from outside and nobody waits for it.
            NotRecorded: a recording has no more answers: the end of a replay, not a fault.
            ProviderError: no call can be made, or five in a row failed.
            ValueError: a proposal that this generator cannot carry out.
        """
        if not self.needs_call(proposal):
            return without_call(proposal, self._start, self._store)
        try:
            return self._with_call(info, proposal, Until(deadline_s))
        finally:
            with self._mutex:
                self._cut.discard(proposal.id)

    def renew(self, info: ProblemInfo, proposal: Proposal) -> None:
        """Replace the prompt of a proposal that waits in vain, if it does; call nobody.

        Raises:
            EndpointDown: the folder that it waits in cannot be used any more.
        """
        sent = self._prompts.sent(proposal)
        if sent is None or self._renewal is None:
            return
        fresh = self._renewal.renewed(info, proposal, sent)
        if not self._prompts.is_sent(proposal, fresh):
            self._prompts.awaits(proposal, fresh)

    def prompt_for(self, info: ProblemInfo, proposal: Proposal) -> RenderedPrompt:
        """Return the prompt of a proposal that needs a call, without calling anybody.

        The one that was sent, if one was; a draft's idea is in it only where it is known already.

        Raises:
            ConfigError: the language is of no use on the GPU.
        """
        self._check_language(info)
        index = proposal.point.get("idea")
        idea = self._ideas.known(index) if isinstance(index, int) else None
        return self._prompts.sent(proposal) or self._prompts.peek(info, proposal, idea)

    def ideas_prompt(self, info: ProblemInfo) -> Prompt:
        """Return the prompt that asks for ideas before the first drafts."""
        return self._prompts.ideas_prompt(info)

    def _check_language(self, info: ProblemInfo) -> None:
        if self._language != GLUON.name:
            return
        if text := why_no_gluon(info.device, info.environment.get("gpu")):
            raise ConfigError(f"--language {self._language}: {text}")

    def _with_call(self, info: ProblemInfo, proposal: Proposal, until: Until) -> Written:
        sent = self._prompts.sent(proposal)
        taken = Taken()
        if sent is None and _wants_idea(proposal):
            taken = self._take_idea(info, proposal, until)
        if taken.was_cut or self._is_cut(proposal):
            return _without_code(CALL_FAILED, CUT)
        kill_points.reach("before-prompt")
        if sent is None:
            rendered = self._prompts.write(info, proposal, taken.idea)
        elif self._renewal is not None:
            rendered = self._renewal.renewed(info, proposal, sent)
        else:
            rendered = sent
        answer = self._caller.call(
            rendered.prompt, self._prompts.key(proposal.id), until.remaining_s()
        )
        notes = (taken.note,) if taken.note else ()
        written = self._read(answer, self._prompts.shown_candidate(proposal))
        return replace(
            written,
            asked=rendered.asked,
            notes=(*notes, *written.notes),
            spent=answer.spent,
        )

    def _take_idea(self, info: ProblemInfo, proposal: Proposal, until: Until) -> Taken:
        return self._ideas.take(
            proposal.id,
            int(proposal.point["idea"]),
            prompt=lambda: self._prompts.ideas_prompt(info),
            deadline_s=until.remaining_s(),
            is_cut=lambda: self._is_cut(proposal),
        )

    def _read(self, answer: Answer, parent: Candidate | None) -> Written:
        reply = answer.reply
        if reply is None:
            return _without_code(CALL_FAILED, answer.failure)
        if reply.finish is Finish.REFUSAL:
            said = one_line(reply.text, 200)
            told = f"the model declined: {said}" if said else "the model declined to answer"
            return _without_code(REFUSED, told)
        kill_points.reach("before-parse")
        found = extract(reply.text, language=self._language, parent=parent)
        kill_points.reach("after-parse")
        if isinstance(found, NoCode):
            return _no_code(found, reply)
        notes = [*found.notes, said_note(reply.text), TWICE if reply.uncertain else None]
        return Written(
            candidate=found.candidate,
            declared=found.space,
            notes=tuple(note for note in notes if note),
        )

    def _is_cut(self, proposal: Proposal) -> bool:
        with self._mutex:
            return proposal.id in self._cut


def _wants_idea(proposal: Proposal) -> bool:
    return proposal.action == Action.DRAFT and isinstance(proposal.point.get("idea"), int)


def _no_code(found: NoCode, reply: Reply) -> Written:
    """Return what a reply without a candidate comes to, with enough of it to ask again."""
    message = found.message
    if reply.finish is Finish.LENGTH and not reply.text.strip():
        message = "the reply reached its length limit before any code; think less, then answer"
    text = reply.text if len(reply.text) <= 10 * REPLY_CHARS else reply.text[-10 * REPLY_CHARS :]
    kept = head_and_tail(clean(text), lines=REPLY_LINES, chars=REPLY_CHARS)
    evidence = Evidence(
        kind="no_code", message=message, details={"reason": found.reason.value, "reply": kept}
    )
    return Written(no_code=evidence, notes=(TWICE,) if reply.uncertain else ())


def _without_code(kind: str, message: str) -> Written:
    return Written(no_code=Evidence(kind=kind, message=message))
