"""A prompt that nobody has answered, and a final verdict that refuses the kernel which it shows."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from hotloop.core.attempt import Action, Budget
from hotloop.core.verdict import Status, Tier
from hotloop.engine import Parts, StopReason, run_search
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.continuing import ContinuingModel
from hotloop.llm.directory import DirectoryModel
from hotloop.llm.journaled import JournaledModel
from hotloop.prompts.author import ModelGenerator
from hotloop.prompts.renewal import Post
from hotloop.search.refine import RefineStrategy
from hotloop.store.memory import MemoryStore
from hotloop.testing.fake_model import FastClock
from hotloop.testing.fakes import FakeVerifier, fake_verdict, make_problem, make_spec

PROBLEM = make_problem()

KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        copy_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y, "{mark}"
"""


class Judge(FakeVerifier):
    """Kernels take the milliseconds that stand in their text; some are refused at the end."""

    wrong = frozenset()

    def verify(self, candidate, tier):
        self.calls.append((tier.value, candidate.id))
        latency_ms = float(candidate.text().split('y, "')[1].split(" ms")[0])
        is_wrong = tier is Tier.FINAL and latency_ms in self.wrong
        outcome = Status.INCORRECT_NUMERICAL if is_wrong else latency_ms
        return fake_verdict(outcome, candidate.id, tier=tier)


class Answered:
    """A run whose prompts are answered in a folder; each `run` is a session."""

    def __init__(self, folder):
        self.folder = folder
        self.store = MemoryStore()

    def run(self, *, wrong=(), closes=False, calls=9, wait=False, on_load=lambda: None):
        clock = FastClock()
        source = DirectoryModel(self.folder, wait=wait, poll_s=0.001)
        notes = CallNotes(self.store)
        generator = ModelGenerator(
            ContinuingModel(JournaledModel(source, notes)), notes, self.store, PROBLEM,
            language="triton", is_outside=True, notice=source.notice,
            post=Post(withdraw=source.withdraw, holds=source.holds),
        )  # fmt: skip
        verifier = Judge(clock=clock, on_load=on_load)
        verifier.wrong = frozenset(wrong)
        parts = Parts(
            generator=generator, strategy=partial(RefineStrategy, width=1), verifier=verifier,
            store=self.store, calls=1, closes=closes,
        )  # fmt: skip
        spec = make_spec(PROBLEM, budget=Budget(max_calls=calls))
        return run_search(PROBLEM, parts, spec=spec, clock=clock)

    def answer(self, latency_ms, prompt=None):
        """Answer a prompt, by default the one that waits, with a kernel of so many milliseconds."""
        prompt = prompt or self.waiting()
        name = prompt.name.replace(".prompt.", ".reply.").replace(".withdrawn.", ".reply.")
        text = KERNEL.replace("{mark}", f"{latency_ms} ms")
        (self.folder / name).write_text(f"I changed it.\n\n```python\n{text}```\n")

    def prompts(self):
        """Return the prompts without an answer."""
        found = sorted(self.folder.glob("*.prompt.md"))
        return [p for p in found if not p.with_name(p.name.replace(".prompt", ".reply")).exists()]

    def waiting(self):
        (prompt,) = self.prompts()
        return prompt

    def until_the_third_prompt(self):
        """Two kernels of 0.5 and 0.4 ms, and a prompt to improve the second."""
        for latency_ms in (0.5, 0.4):
            assert self.run().reason is StopReason.WAITING
            self.answer(latency_ms)
        self.run()
        return self.waiting()


@pytest.fixture
def answered(tmp_path):
    return Answered(tmp_path / "answers")


def test_a_prompt_about_a_kernel_that_was_refused_since_is_replaced(answered):
    old = answered.until_the_third_prompt()
    text = old.read_text()
    assert "0.4 ms" in text
    result = answered.run(closes=True, wrong={0.4})
    assert result.final.performance.latency_ms == 0.5
    new = answered.waiting()
    assert new != old, "by the call that learns of the refusal"
    result = answered.run()
    assert answered.waiting() == new
    assert result.waiting == (str(new),)
    assert new.name != old.name
    assert new.name.rpartition("-")[0] == old.name.rpartition("-")[0], "it is the same call"
    fresh = new.read_text()
    assert "values are wrong" in fresh
    assert "best correct kernel so far: 0.5 ms" in fresh
    assert not old.exists()
    withdrawn = old.with_name(old.name.replace(".prompt.", ".withdrawn."))
    assert new.name in withdrawn.read_text().splitlines()[0]
    assert withdrawn.read_text().endswith(text)

    answered.answer(0.3)
    result = answered.run()
    (attempt,) = [a for a in result.attempts if a.id == 3]
    assert attempt.verdict.passed
    assert attempt.asked.template == "repair"
    assert len([n for n in answered.store.notes("call_response") if n["key"]["attempt"] == 3]) == 1


def test_an_answer_that_came_before_the_refusal_is_used(answered):
    old = answered.until_the_third_prompt()
    answered.answer(0.35)
    answered.run(closes=True, wrong={0.4})
    result = answered.run()
    (attempt,) = [a for a in result.attempts if a.id == 3]
    assert (attempt.verdict.passed, attempt.asked.template) == (True, "optimise")
    assert old.exists()
    assert list(answered.folder.glob("*.withdrawn.md")) == []


def test_an_answer_to_a_prompt_that_was_withdrawn_is_refused_and_said(answered):
    old = answered.until_the_third_prompt()
    answered.run(closes=True, wrong={0.4})
    answered.run()
    withdrawn = old.with_name(old.name.replace(".prompt.", ".withdrawn."))
    answered.answer(0.2, prompt=withdrawn)
    assert answered.run().reason is StopReason.WAITING
    result = answered.run()
    assert result.reason is StopReason.WAITING
    late = old.name.replace(".prompt.", ".reply.")
    told = [note["message"] for note in answered.store.notes("warning")]
    assert sum(f"{late} is not read" in message for message in told) == 1
    assert [a.id for a in result.attempts if a.verdict is None] == [3]
    answered.answer(0.3)
    (attempt,) = [a for a in answered.run().attempts if a.id == 3]
    assert attempt.objective == 0.3


def test_who_waits_for_an_answer_is_told_that_a_late_one_is_not_read(answered):
    old = answered.until_the_third_prompt()
    answered.run(closes=True, wrong={0.4})
    answered.answer(0.2, prompt=old)
    with ThreadPoolExecutor() as pool:
        going_on = pool.submit(answered.run, calls=3, wait=True)
        end_s = time.monotonic() + 10.0
        while not told_late(answered.store) and time.monotonic() < end_s:
            time.sleep(0.01)
        answered.answer(0.3)
        result = going_on.result(timeout=10)
    (late,) = told_late(answered.store)
    assert old.name.replace(".prompt.", ".reply.") in late
    assert (result.reason, result.final.performance.latency_ms) == (StopReason.CALLS, 0.3)


def told_late(store):
    messages = [note["message"] for note in store.notes("warning")]
    return [message for message in messages if "is not read" in message]


def test_a_folder_that_has_vanished_costs_no_result(answered):
    answered.until_the_third_prompt()
    result = answered.run(closes=True, wrong={0.4}, on_load=lambda: shutil.rmtree(answered.folder))
    assert (result.reason, result.passed) == (StopReason.CLOSED, True)
    assert "the folder is gone" in answered.store.notes("warning")[-1]["message"]


@pytest.mark.parametrize("wrong", [set(), {0.9}])
def test_a_prompt_stays_while_nothing_in_it_was_refused(answered, wrong):
    old = answered.until_the_third_prompt()
    answered.run(closes=True, wrong=wrong)
    assert answered.store.notes("final") != []
    answered.run()
    assert answered.waiting() == old
    assert list(answered.folder.glob("*.withdrawn.md")) == []


def test_a_prompt_is_replaced_once(answered):
    answered.until_the_third_prompt()
    answered.run(closes=True, wrong={0.4})
    answered.run()
    new = answered.waiting()
    answered.run()
    assert answered.waiting() == new
    assert len(answered.store.notes("asked")) == 4
    assert len(answered.store.notes("warning")) == 1


def test_what_the_final_tier_refused_is_not_built_on(answered):
    for latency_ms in (0.4, 0.5):
        answered.run(calls=2)
        answered.answer(latency_ms)
    result = answered.run(calls=2, wrong={0.4})
    assert (result.reason, result.final.performance.latency_ms) == (StopReason.CALLS, 0.5)
    result = answered.run(calls=3)
    assert result.attempts[-1].action == Action.OPTIMISE
    assert result.attempts[-1].parents == (2,)
    text = answered.waiting().read_text()
    assert '"0.5 ms"' in text.split("## Your kernel")[-1]
    assert "best correct kernel so far: 0.5 ms" in text


def test_the_refused_kernel_written_again_is_refused_without_a_judge(answered):
    for latency_ms in (0.4, 0.5):
        answered.run(calls=2)
        answered.answer(latency_ms)
    answered.run(calls=2, wrong={0.4})
    answered.run(calls=3)
    answered.answer(0.4)
    result = answered.run(calls=3)
    again = result.attempts[-1]
    assert again.candidate_id == result.attempts[0].candidate_id
    assert (again.verdict.status, again.verdict.tier) == (Status.INCORRECT_NUMERICAL, Tier.FINAL)
    assert again.objective is None
    assert result.final.performance.latency_ms == 0.5
