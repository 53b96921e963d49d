"""From a proposal to its prompt, by the journal alone.

What was sent under an attempt's key is sent again when a run goes on, word for word, so that a paid
reply is found; from which template it came is a note, written before the call. A prompt is about
the kernel of the first parent, or of the nearest attempt before it that has one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from hotloop.core.attempt import Action, Asked, Attempt, Proposal
from hotloop.core.candidate import Candidate
from hotloop.core.finals import FINAL_NOTE, refusals, with_refusals
from hotloop.core.model import CallJournal, CallKey, Message, Prompt, Role
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Store
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Verdict
from hotloop.errors import Pending
from hotloop.prompts import render
from hotloop.prompts.analysis import analyse
from hotloop.prompts.example import Example, Examples
from hotloop.prompts.feedback import Judged
from hotloop.prompts.memory import Memory
from hotloop.prompts.recall import Recall
from hotloop.prompts.render import NO_MEMORY, Context, Sees
from hotloop.prompts.task import Task

NOTE = "asked"
"""Kind of the note that says what an attempt was asked: `attempt`, `asked` (an Asked), and
`refused`, the candidates that the final tier had refused by then; the last one of an attempt counts
for the prompt whose id it names."""
DIFF_LINES = 250
"""A kernel longer than this may be changed by a diff. Shorter ones are written out whole: that
costs little, and a diff can fail to fit."""
_DIFF_FAILED = frozenset({"diff_failed", "diff_without_parent"})
IDEAS_ATTEMPT = 0
"""The attempt in the key of the call for ideas; proposals count from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedPrompt:
    """A prompt as it is sent, and where it comes from."""

    prompt: Prompt
    asked: Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What every prompt of a run has in common."""

    problem: Problem
    language: str
    """A name of `core.language`: what is asked for."""
    sees: Sees = Sees.MEMORY
    n_ideas: int = render.IDEAS
    """How many ideas the call for ideas asks for."""
    examples: Examples | None = None
    """Where verified kernels of other problems come from; None: prompts show none."""


class PromptWriter:
    """Finds or renders prompts. Safe to use from several threads."""

    def __init__(self, journal: CallJournal, store: Store, wording: Wording) -> None:
        """Take over what earlier sessions of the run have asked."""
        self._journal = journal
        self._store = store
        self._wording = wording
        notes = {int(note["attempt"]): note for note in store.notes(NOTE)}
        self._asked = {i: from_json(Asked, note["asked"]) for i, note in notes.items()}
        self._known = {i: frozenset(note.get("refused", ())) for i, note in notes.items()}
        """Refused candidates that the prompt of an attempt reckons with."""
        self._mutex = threading.RLock()

    def key(self, attempt: int) -> CallKey:
        """Return the key of an attempt's call."""
        return CallKey(problem_id=self._wording.problem.id, attempt=attempt)

    def sent(self, proposal: Proposal) -> RenderedPrompt | None:
        """Return the prompt that was sent for a proposal; None when none was."""
        prompt = self._journal.prompt(self.key(proposal.id))
        if prompt is None:
            return None
        with self._mutex:
            asked = self._asked.get(proposal.id)
        if asked is None or asked.prompt_id != prompt.id:
            # Sent without its note: its text counts, and where it comes from is not known.
            asked = self._asked_with(prompt, template=proposal.action, digest="")
        return RenderedPrompt(prompt=prompt, asked=asked)

    def write(self, info: ProblemInfo, proposal: Proposal, idea: str | None) -> RenderedPrompt:
        """Render a prompt and write down what it asks, before any other prompt is rendered."""
        with self._mutex:
            rendered = self.peek(info, proposal, idea)
            self.note(proposal, rendered)
        return rendered

    def is_sent(self, proposal: Proposal, rendered: RenderedPrompt) -> bool:
        """Whether a prompt is the last one that was sent for a proposal."""
        return self._journal.prompt(self.key(proposal.id)) == rendered.prompt

    def note(
        self, proposal: Proposal, rendered: RenderedPrompt, *, refused: Iterable[str] | None = None
    ) -> None:
        """Write down what a prompt asks.

        Args:
            proposal: the attempt's.
            rendered: the prompt.
            refused: the candidates that the final tier had refused when it was rendered; None:
                those of the journal as it stands.
        """
        with self._mutex:
            known = frozenset(self._refused() if refused is None else refused)
            note = {"attempt": proposal.id, "asked": to_json(rendered.asked)}
            self._store.note(NOTE, note | {"refused": sorted(known)} if known else note)
            self._asked[proposal.id] = rendered.asked
            self._known[proposal.id] = known

    def awaits(self, proposal: Proposal, rendered: RenderedPrompt) -> None:
        """Journal a prompt that waits for an answer from outside, though nobody calls for it now.

        What goes on later goes on with it, as with any other that was sent.
        """
        key, prompt = self.key(proposal.id), rendered.prompt
        self._journal.intend(key, prompt)
        self._journal.fail(key, prompt.id, Pending("in the place of another; it awaits an answer"))

    def outdated(self, info: ProblemInfo, proposal: Proposal) -> RenderedPrompt | None:
        """Return the prompt that is to take the place of one that was sent; None: it is right.

        It is wrong once the final tier has refused a kernel that it builds on or is measured by.
        What was concluded meanwhile does not make it wrong, nor is one replaced that the journal
        has a reply to.
        """
        sent = self.sent(proposal)
        if sent is None or self._journal.state(self.key(proposal.id), sent.prompt.id).reply:
            return None
        refused = self._refused()
        with self._mutex:
            asked = self._asked.get(proposal.id)
            is_noted = asked is not None and asked.prompt_id == sent.prompt.id
            known = self._known.get(proposal.id, frozenset()) if is_noted else frozenset()
        if refused.keys() <= known:
            return None
        before = {i: verdict for i, verdict in refused.items() if i in known}
        idea = None if asked is None else asked.idea
        was, fresh = (self._render(info, proposal, idea, r) for r in (before, refused))
        return fresh if fresh.prompt != was.prompt else None

    def peek(self, info: ProblemInfo, proposal: Proposal, idea: str | None) -> RenderedPrompt:
        """Render a proposal's prompt as the journal stands; write nothing down."""
        return self._render(info, proposal, idea, self._refused())

    def _render(
        self,
        info: ProblemInfo,
        proposal: Proposal,
        idea: str | None,
        refused: Mapping[str, Verdict],
    ) -> RenderedPrompt:
        """Render a prompt; what was asked under its own attempt before does not count."""
        recall = self._recall(refused, but=proposal.id)
        parent = proposal.parents[0] if proposal.parents else None
        if idea is None and parent is not None and self._wording.sees is not Sees.NOTHING:
            idea = recall.idea(parent)
        made, example = self._prompt(self._task(info), proposal, recall, idea)
        prompt = _message(made.text)
        asked = self._asked_with(prompt, template=made.template, digest=made.template_digest)
        asked = replace(asked, move=made.move, idea=idea if made.template == "first" else None)
        if example is not None:
            asked = replace(asked, example=example.mark)
        return RenderedPrompt(prompt=prompt, asked=asked)

    def ideas_prompt(self, info: ProblemInfo) -> Prompt:
        """Return the prompt that asks for ideas before the first drafts, as sent if it was."""
        sent = self._journal.prompt(self.key(IDEAS_ATTEMPT))
        if sent is not None:
            return sent
        memory = self._shown_memory(self._recall(self._refused()), info)
        count = self._wording.n_ideas
        return _message(render.ideas_prompt(self._task(info), count=count, memory=memory).text)

    def shown_candidate(self, proposal: Proposal) -> Candidate | None:
        """Return the candidate that a proposal's prompt is about; None where it shows none."""
        if self._wording.sees is Sees.NOTHING or not proposal.parents:
            return None
        subject = self._recall(self._refused()).subject(proposal.parents[0])
        return None if subject is None else self._store.candidate(str(subject.candidate_id))

    def _prompt(
        self, task: Task, proposal: Proposal, recall: Recall, idea: str | None
    ) -> tuple[render.Prompt, Example | None]:
        """Return a prompt and the example in it.

        Only a prompt for a new design shows one: to mend or to improve a kernel, its own verdict
        says more.
        """
        sees = self._wording.sees
        if sees is Sees.NOTHING:
            example = self._example(task.info, but=proposal.id)
            return render.first_prompt(task, idea=idea, example=example), example
        parent = proposal.parents[0] if proposal.parents else None
        lapse = recall.lapse(parent) if parent is not None else None
        subject = recall.subject(parent) if parent is not None else None
        if subject is None:
            lapse = lapse if sees >= Sees.EXECUTION else None
            memory = self._shown_memory(recall, task.info)
            example = self._example(task.info, but=proposal.id)
            return (
                render.first_prompt(task, idea=idea, memory=memory, lapse=lapse, example=example),
                example,
            )
        context = replace(self._context(task, subject, recall), lapse=lapse)
        context = replace(context, wants_diff=_may_be_diff(context))
        if sees is Sees.CODE:  # which template it is would tell the verdict
            return render.repair_prompt(task, context), None
        if proposal.action == Action.REGENERATE:
            example = self._example(task.info, but=proposal.id)
            return render.regenerate_prompt(task, replace(context, example=example)), example
        passed = context.judged.verdict.passed
        return (render.optimise_prompt if passed else render.repair_prompt)(task, context), None

    def _context(self, task: Task, subject: Attempt, recall: Recall) -> Context:
        assert subject.verdict is not None  # noqa: S101  a subject has its verdict
        candidate = self._store.candidate(str(subject.candidate_id))
        judged = Judged(
            verdict=subject.verdict, candidate=candidate, problem=task.problem, info=task.info
        )
        precision = task.problem.policy.precision
        return Context(
            judged=judged,
            findings=analyse(
                candidate.text(),
                inputs=task.info.inputs,
                precision=precision,
                eager_tf32=task.info.eager_tf32,
            ),
            memory=recall.memory(subject.id, task.info),
            sees=self._wording.sees,
            beats=recall.beats(subject.id),
            mends=recall.mends(subject.id),
        )

    def _example(self, info: ProblemInfo, *, but: int) -> Example | None:
        """Return an example that no prompt of the run had, the attempt's own left out."""
        if self._wording.examples is None:
            return None
        with self._mutex:
            shown = [asked.example for i, asked in self._asked.items() if i != but]
        return self._wording.examples.find(info, frozenset(mark for mark in shown if mark))

    def _shown_memory(self, recall: Recall, info: ProblemInfo) -> Memory:
        return recall.memory(None, info) if self._wording.sees >= Sees.MEMORY else NO_MEMORY

    def _refused(self) -> dict[str, Verdict]:
        return refusals(self._store.notes(FINAL_NOTE))

    def _recall(self, refused: Mapping[str, Verdict], *, but: int | None = None) -> Recall:
        with self._mutex:
            asked = {i: found for i, found in self._asked.items() if i != but}
        attempts = with_refusals(self._store.attempts(), refused)
        return Recall(attempts, asked, self._wording.problem, self._wording.language)

    def _task(self, info: ProblemInfo) -> Task:
        return Task(problem=self._wording.problem, info=info, language=self._wording.language)

    def _asked_with(self, prompt: Prompt, *, template: str, digest: str) -> Asked:
        sees = self._wording.sees.name.lower()
        return Asked(template=template, template_digest=digest, prompt_id=prompt.id, sees=sees)


def _may_be_diff(context: Context) -> bool:
    """Whether a change may come as a diff: of a long kernel, and not after a diff that failed."""
    candidate, lapse = context.judged.candidate, context.lapse
    if candidate is None or sum(s.text.count("\n") for s in candidate.sources) <= DIFF_LINES:
        return False
    evidence = lapse.evidence if lapse is not None else None
    return evidence is None or evidence.details.get("reason") not in _DIFF_FAILED


def _message(text: str) -> Prompt:
    return Prompt(messages=(Message(role=Role.USER, text=text),))
