"""From a proposal to its prompt, by the journal alone.

What was sent under an attempt's key is sent again when a run goes on, word for word, so that a paid
reply is found; from which template it came is a note, written before the call. A prompt is about
the kernel of the first parent, or of the nearest attempt before it that has one.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from hotloop.core.attempt import Action, Asked, Attempt, Proposal
from hotloop.core.candidate import Candidate
from hotloop.core.model import CallJournal, CallKey, Message, Prompt, Role
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Store
from hotloop.core.record import from_json, to_json
from hotloop.prompts import render
from hotloop.prompts.analysis import analyse
from hotloop.prompts.example import Example, Examples
from hotloop.prompts.feedback import Judged
from hotloop.prompts.memory import Memory
from hotloop.prompts.recall import Recall
from hotloop.prompts.render import NO_MEMORY, Context, Sees
from hotloop.prompts.task import Task

NOTE = "asked"
"""Kind of the note that says what an attempt was asked: {"attempt": id, "asked": Asked}."""
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
        self._asked = {int(n["attempt"]): from_json(Asked, n["asked"]) for n in store.notes(NOTE)}
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
            self._store.note(NOTE, {"attempt": proposal.id, "asked": to_json(rendered.asked)})
            self._asked[proposal.id] = rendered.asked
        return rendered

    def peek(self, info: ProblemInfo, proposal: Proposal, idea: str | None) -> RenderedPrompt:
        """Render a proposal's prompt as the journal stands; write nothing down."""
        recall = self._recall()
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
        memory = self._shown_memory(self._recall(), info)
        count = self._wording.n_ideas
        return _message(render.ideas_prompt(self._task(info), count=count, memory=memory).text)

    def shown_candidate(self, proposal: Proposal) -> Candidate | None:
        """Return the candidate that a proposal's prompt is about; None where it shows none."""
        if self._wording.sees is Sees.NOTHING or not proposal.parents:
            return None
        subject = self._recall().subject(proposal.parents[0])
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
            example = self._example(task.info)
            return render.first_prompt(task, idea=idea, example=example), example
        parent = proposal.parents[0] if proposal.parents else None
        lapse = recall.lapse(parent) if parent is not None else None
        subject = recall.subject(parent) if parent is not None else None
        if subject is None:
            lapse = lapse if sees >= Sees.EXECUTION else None
            memory = self._shown_memory(recall, task.info)
            example = self._example(task.info)
            return (
                render.first_prompt(task, idea=idea, memory=memory, lapse=lapse, example=example),
                example,
            )
        context = replace(self._context(task, subject, recall), lapse=lapse)
        context = replace(context, wants_diff=_may_be_diff(context))
        if sees is Sees.CODE:  # which template it is would tell the verdict
            return render.repair_prompt(task, context), None
        if proposal.action == Action.REGENERATE:
            example = self._example(task.info)
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
            findings=analyse(candidate.text(), inputs=task.info.inputs, precision=precision),
            memory=recall.memory(subject.id, task.info),
            sees=self._wording.sees,
            beats=recall.beats(subject.id),
            mends=recall.mends(subject.id),
        )

    def _example(self, info: ProblemInfo) -> Example | None:
        """Return an example that no earlier prompt of the run had."""
        if self._wording.examples is None:
            return None
        with self._mutex:
            shown = frozenset(a.example for a in self._asked.values() if a.example is not None)
        return self._wording.examples.find(info, shown)

    def _shown_memory(self, recall: Recall, info: ProblemInfo) -> Memory:
        return recall.memory(None, info) if self._wording.sees >= Sees.MEMORY else NO_MEMORY

    def _recall(self) -> Recall:
        with self._mutex:
            asked = dict(self._asked)
        wording = self._wording
        return Recall(self._store.attempts(), asked, wording.problem, wording.language)

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
