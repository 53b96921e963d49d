"""What the call for ideas cost counts once, whenever a run is cut off and goes on."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from hotloop.core.attempt import Action, Budget, Proposal, Spent
from hotloop.engine import Parts, StopFlag, run_search
from hotloop.engine.costs import CallCosts
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.journaled import JournaledModel
from hotloop.prompts.author import ModelGenerator
from hotloop.search.hybrid import HybridStrategy
from hotloop.store.memory import MemoryStore
from hotloop.testing.fake_model import FastClock
from hotloop.testing.fakes import Costs, FakeVerifier, make_problem, make_spec
from hotloop.testing.scripted_model import WAIT, ScriptedModel

PROBLEM = make_problem()
IDEAS = "1. One row a program.\n2. Two rows a program."
KERNEL = """I keep the row on the chip.

```python
import torch, triton
import triton.language as tl

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)  # number

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scale[(1,)](x, y, x.numel(), BLOCK=1024)
        return y
```
"""
ATTEMPTS = 3
TOKENS = 150
"""Of each reply of a scripted model."""


def answer(key, prompt):
    return KERNEL.replace("number", str(key.attempt)) if key.attempt else IDEAS


class Killed(BaseException):
    """The process is gone."""


class MortalStore(MemoryStore):
    """A journal whose process is killed before one of its writes; 0 is the first one."""

    writes = 0
    dies_at = None

    def note(self, kind, payload):
        self._write()
        super().note(kind, payload)

    def propose(self, attempt, candidate):
        self._write()
        super().propose(attempt, candidate)

    def conclude(self, attempt):
        self._write()
        super().conclude(attempt)

    def _write(self):
        if self.dies_at is not None and self.writes >= self.dies_at:
            raise Killed  # nothing is written any more, by no thread
        self.writes += 1


def generator_on(store, model):
    notes = CallNotes(store)
    return ModelGenerator(JournaledModel(model, notes), notes, store, PROBLEM, language="triton")


def search(store, model=None, stop=None):
    """Run one session until its end, its death, or a request to stop."""
    model = model or ScriptedModel(answer)
    verifier = FakeVerifier(
        clock=FastClock(),
        costs=Costs(load_s=0.0, fast_s=0.0, final_s=0.0),
        behaviour=lambda point, tier: 0.5,
    )
    parts = Parts(
        generator=generator_on(store, model),
        strategy=partial(HybridStrategy, width=1),
        verifier=verifier,
        store=store,
        calls=1,
    )
    budget = Budget(max_candidates=ATTEMPTS)
    spec = make_spec(PROBLEM, device=verifier.device, budget=budget)
    return run_search(PROBLEM, parts, spec=spec, clock=verifier.clock, stop=stop)


def test_a_run_counts_each_reply_once():
    result = search(MortalStore())
    assert (result.calls, result.tokens) == (ATTEMPTS + 1, TOKENS * (ATTEMPTS + 1))


def test_killed_before_any_write_each_reply_counts_once():
    whole = MortalStore()
    search(whole)
    assert whole.writes > 20
    for boundary in range(whole.writes):
        store = MortalStore()
        store.dies_at = boundary
        with pytest.raises(Killed):
            search(store)
        store.dies_at = None
        result = search(store)
        replies = len(store.notes("call_response"))
        assert replies == ATTEMPTS + 1
        assert (result.calls, result.tokens) == (replies, TOKENS * replies), boundary


@pytest.mark.parametrize("place", range(ATTEMPTS + 1))
def test_stopped_in_any_call_each_sending_counts_once(place):
    model = ScriptedModel(answer)
    model.script = lambda key, prompt: WAIT if len(model.calls) > place else answer(key, prompt)
    stop, store = StopFlag(), MemoryStore()

    def stop_in_call():
        assert model.began.wait(5)
        stop.request()

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(stop_in_call)
        stopped = search(store, model, stop)
        watching.result(5)
    assert len(model.calls) == stopped.calls == place + 1
    later = ScriptedModel(answer)
    result = search(store, later)
    assert len(store.notes("call_response")) == ATTEMPTS + 1
    assert result.calls == len(model.calls) + len(later.calls) == ATTEMPTS + 2


def draft(number):
    return Proposal(id=number, action=Action.DRAFT, point={"idea": 0}, parents=())


def written_by(store, script, *, cut):
    """Have draft 1 written in a session of its own, and note what that cost."""
    model = ScriptedModel(script)
    generator = generator_on(store, model)
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(generator.generate, FakeVerifier().load(PROBLEM), draft(1))
        if cut:
            assert model.began.wait(5)
            generator.cancel(1)
        written = result.result(10)
    CallCosts(store).add(1, written.spent)
    return written


def test_ideas_that_were_answered_before_the_draft_was_cut_count_once():
    store = MemoryStore()
    written_by(store, {0: IDEAS, 1: WAIT}, cut=True)
    written_by(store, {1: KERNEL}, cut=False)
    costs = CallCosts(store)
    assert costs.calls == 3, "for ideas, cut, and sent again"
    assert costs.tokens().unknown == 2, "of the draft, one part of which nobody knows"
    assert costs.tokens().known == TOKENS


def test_ideas_that_were_cut_count_as_often_as_they_were_sent():
    store = MemoryStore()
    for _ in range(2):
        written_by(store, {0: WAIT}, cut=True)
    written_by(store, {0: IDEAS, 1: KERNEL}, cut=False)
    assert CallCosts(store).calls == 4


def test_ideas_are_in_the_total_before_any_draft_was_charged():
    store = MemoryStore()
    generator_on(store, ScriptedModel(answer)).generate(FakeVerifier().load(PROBLEM), draft(1))
    assert (CallCosts(store).calls, CallCosts(store).tokens().exact) == (1, TOKENS)


def test_a_live_budget_has_the_ideas_before_their_draft_is_charged():
    store = MemoryStore()
    costs = CallCosts(store)
    assert (costs.calls, costs.tokens().exact, costs.usd().exact) == (0, 0, 0)
    fields = {"calls": 1, "tokens": TOKENS, "usd": 0.25, "call_s": 2.0}
    for _ in range(2):
        store.note("ideas_failed", {"cost": fields})
    assert costs.calls == 2
    assert costs.tokens().exact == 2 * TOKENS
    assert costs.usd().exact == 0.5
    assert store.notes("call_cost") == [], "to look at a budget writes nothing"


def test_ideas_that_an_older_journal_charged_to_a_draft_are_not_counted_again():
    store = MemoryStore()
    fields = {"calls": 1, "tokens": TOKENS, "usd": 0.01, "call_s": 2.0}
    store.note("ideas", {"attempt": 1, "spent": fields, "ideas": ["one"], "missing": ""})
    CallCosts(store).add(1, Spent(calls=2, tokens=2 * TOKENS, usd=0.02, call_s=4.0))
    assert (CallCosts(store).calls, CallCosts(store).tokens().exact) == (2, 2 * TOKENS)
