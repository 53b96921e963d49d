"""The whole way of a candidate that the judge elsewhere cannot judge, through verdict files."""

from dataclasses import replace
from functools import partial

from hotloop.core.attempt import Budget
from hotloop.core.verdict import Status, Tier
from hotloop.engine import Parts, StopReason, run_search
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.journaled import JournaledModel
from hotloop.prompts.author import ModelGenerator
from hotloop.search.sample import SampleStrategy
from hotloop.store.memory import MemoryStore
from hotloop.testing.fake_model import FastClock
from hotloop.testing.fakes import FakeVerifier, fake_verdict, make_problem, make_spec
from hotloop.testing.scripted_model import ScriptedModel
from hotloop.verify.bundle import JudgeError, Verdicts
from hotloop.verify.outside import OutsideVerifier, pending_items, take_in

PROBLEM = make_problem()
INFO = FakeVerifier().load(PROBLEM)
KERNEL = """I copy.

```python
import torch, triton
import triton.language as tl

@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)  # number

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        copy[(1,)](x, y, x.numel(), BLOCK=1024)
        return y
```
"""


class Run(MemoryStore):
    """A journal that is also read as a run."""

    def problem(self):
        return PROBLEM


def search(store):
    notes = CallNotes(store)
    model = ScriptedModel(lambda key, prompt: KERNEL.replace("number", str(key.attempt)))
    parts = Parts(
        generator=ModelGenerator(
            JournaledModel(model, notes), notes, store, PROBLEM, language="triton"
        ),
        strategy=partial(SampleStrategy, width=1, has_feedback=False),
        verifier=OutsideVerifier(store, PROBLEM),
        store=store,
        calls=1,
    )
    spec = make_spec(PROBLEM, budget=Budget(max_candidates=2))
    return run_search(PROBLEM, parts, spec=spec, clock=FastClock())


def judge(store, *, refuses):
    """Bring back a verdict on all that is pending, and an error on what the machine refuses.

    The same file may be given twice.
    """
    verdicts, errors = [], []
    for item in pending_items(store):
        if refuses(item):
            errors.append(
                JudgeError(
                    problem_id=PROBLEM.id,
                    candidate_id=item.candidate.id,
                    error="DeviceLost",
                    message="no GPU",
                    tier=item.tier,
                    asked=item.asked,
                )
            )
        else:
            verdict = fake_verdict(0.5, item.candidate.id, tier=item.tier)
            verdicts.append(replace(verdict, problem_id=PROBLEM.id))
    file = Verdicts(verdicts=tuple(verdicts), errors=tuple(errors))
    for _ in range(2):
        take_in(store, PROBLEM, file)


def is_candidate(candidate_id):
    return lambda item: item.candidate.id == candidate_id


def first_is_sent_away():
    store = Run()
    store.begin(make_spec(PROBLEM, budget=Budget(max_candidates=2)), PROBLEM)
    assert search(store).reason is StopReason.WAITING
    take_in(store, PROBLEM, Verdicts(infos={PROBLEM.id: INFO}))
    assert search(store).reason is StopReason.WAITING
    return store, store.attempts()[0].candidate_id


def carried_to_the_end(store, refuses=lambda item: False):
    """Carry files to and fro until the run no longer waits; return its result."""
    for _ in range(10):
        result = search(store)
        if result.reason is not StopReason.WAITING:
            return result
        judge(store, refuses=refuses)
    raise AssertionError("it waits for ever")


def test_refused_twice_it_ends_and_another_kernel_wins():
    store, first = first_is_sent_away()
    judge(store, refuses=is_candidate(first))
    assert search(store).reason is StopReason.WAITING
    assert [item.candidate.id for item in pending_items(store)] == [first]
    result = carried_to_the_end(store, is_candidate(first))
    lost, other = result.attempts
    assert (lost.verdict.status, lost.verdict.evidence.kind) == (Status.INCONCLUSIVE, "not_judged")
    assert "DeviceLost: no GPU" in lost.verdict.message
    assert result.reason is StopReason.CANDIDATES
    assert result.final.candidate_id == other.candidate_id
    assert pending_items(store) == [], "what was given up is asked of nobody any more"


def test_refused_once_it_is_judged_the_next_time():
    store, first = first_is_sent_away()
    judge(store, refuses=is_candidate(first))
    result = carried_to_the_end(store)
    assert all(a.verdict.passed for a in result.attempts)
    assert result.reason is StopReason.CANDIDATES
    finals = {n["candidate_id"] for n in store.notes("final")}
    assert first in finals, "a failure at the fast tier is none of the final one"


def test_finals_that_no_machine_can_make_are_gone_on_without():
    store, _ = first_is_sent_away()
    result = carried_to_the_end(store, lambda item: item.tier is Tier.FINAL)
    assert result.reason is StopReason.CANDIDATES
    assert result.final is None
    warnings = [note["message"] for note in store.notes("warning")]
    assert any("could not be judged elsewhere (final)" in message for message in warnings)
