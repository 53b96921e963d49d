"""A run for the tests of the author: a store, a scripted model, and attempts that conclude."""

import dataclasses

from prompt_cases import norm_task, passed, verdict

from hotloop.core.attempt import Action, Attempt, Proposal
from hotloop.core.verdict import Stage, Status
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.continuing import ContinuingModel
from hotloop.llm.journaled import JournaledModel
from hotloop.prompts.author import ModelGenerator
from hotloop.store.memory import MemoryStore
from hotloop.testing.scripted_model import ScriptedModel

TASK = norm_task()
IDEAS = "1. Keep a row in registers.\n2. Two rows a program.\n3. Split each row.\n4. Persist."


def kernel(mark="", *, tunables=""):
    return f"""import torch
import triton
import triton.language as tl

BLOCK = 1024
{tunables}

@triton.jit
def norm_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)  # {mark}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        norm_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
        return y
"""


def reply(mark="", *, said="I keep the row on the chip.", **fields):
    return f"{said}\n\n```python\n{kernel(mark, **fields)}```\n"


def fast(latency_ms=0.0281):
    known = passed()
    performance = dataclasses.replace(known.performance, latency_ms=latency_ms)
    return dataclasses.replace(known, performance=performance)


def broken(message="at line 3: invalid syntax"):
    return verdict(Status.COMPILE_ERROR, stage=Stage.COMPILE, kind="compile_error",
                   message=message)  # fmt: skip


class Run:
    """One run; `again()` is the next session of the same one."""

    def __init__(self, script, *, task=TASK, store=None, paid=True, **options):
        self.task, self.options = task, options
        self.store = store or MemoryStore()
        self.model = ScriptedModel(script, paid=paid)
        notes = CallNotes(self.store)
        model = ContinuingModel(JournaledModel(self.model, notes))
        self.generator = ModelGenerator(
            model, notes, self.store, task.problem, language=task.language, **options
        )

    def again(self, script):
        return Run(script, task=self.task, store=self.store, **self.options)

    def propose(self, number, action=Action.DRAFT, parent=None, **point):
        parents = () if parent is None else (parent,)
        proposal = Proposal(id=number, action=action, point=point, parents=parents)
        self.store.propose(_attempt(proposal), None)
        return proposal

    def write(self, proposal, **fields):
        return self.generator.generate(self.task.info, proposal, **fields)

    def step(self, number, ends, action=Action.DRAFT, parent=None, **point):
        """Propose, generate, conclude; `ends` is the verdict on a candidate."""
        proposal = self.propose(number, action, parent, **point)
        written = self.write(proposal)
        self.conclude(proposal, written, ends)
        return written

    def conclude(self, proposal, written, ends):
        found, candidate = written.no_code, written.candidate
        if found is not None:
            ends = verdict(Status.NO_CODE, stage=Stage.EXTRACT, kind=found.kind,
                           message=found.message, details=found.details)  # fmt: skip
        performance = ends.performance
        attempt = dataclasses.replace(
            _attempt(proposal), candidate_id=candidate.id if candidate else None,
            declared=written.declared, asked=written.asked, notes=written.notes,
        )  # fmt: skip
        self.store.propose(attempt, candidate)
        objective = performance.latency_ms if performance else 1.0 if ends.passed else None
        self.store.conclude(
            dataclasses.replace(
                attempt, verdict=ends, objective=objective, finished_s=float(proposal.id)
            )
        )

    def prompt(self, number):
        return self.model.prompt(number)


def _attempt(proposal):
    return Attempt(
        id=proposal.id, action=proposal.action, point=proposal.point, parents=proposal.parents,
        generator="model", candidate_id=None, verdict=None, objective=None, started_s=0.0,
        finished_s=None,
    )  # fmt: skip
