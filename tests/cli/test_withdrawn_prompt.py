"""A folder that is answered, a judge elsewhere, and a refusal that comes before the answer."""

from dataclasses import replace

import pytest
from model_run import info_of, plan_in

from hotloop import api
from hotloop.api import run_plan
from hotloop.cli.prompt import of_run
from hotloop.core.verdict import Status, Tier
from hotloop.engine import StopReason
from hotloop.testing.fakes import fake_verdict
from hotloop.verify.bundle import Verdicts, write_verdicts

KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def attend(q, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(q + i, mask=i < n), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        out = torch.empty_like(q)
        attend[(triton.cdiv(q.numel(), 64),)](q, out, q.numel(), BLOCK=64)
        return out
"""


@pytest.mark.parametrize("close", [True, False])
def test_the_prompt_is_replaced_by_the_call_that_takes_the_refusal_in(tmp_path, close):
    def session(*, close=False, **content):
        given = {"device": "cuda", "judge": "bundle", "no_wait": True, "strategy": "refine"}
        plan = plan_in(tmp_path, **given, parallel=1, close=close)
        if content:
            path = tmp_path / "verdicts"
            write_verdicts(path, Verdicts(**content))
            plan = replace(plan, verdicts=path)
        return plan, run_plan(plan)

    def judged(outcome, tier):
        verdict = fake_verdict(outcome, result.attempts[0].candidate_id, tier=tier)
        return (replace(verdict, problem_id=plan.problem.id),)

    def prompts():
        answered = {p.name.replace(".reply.", ".prompt.") for p in folder.glob("*.reply.md")}
        return [p for p in folder.glob("*.prompt.md") if p.name not in answered]

    folder = tmp_path / "answers"
    plan, result = session()
    info = replace(info_of(plan.problem), device="cuda")
    session(infos={plan.problem.id: info})
    (first,) = prompts()
    first.with_name(first.name.replace(".prompt.", ".reply.")).write_text(
        f"A copy.\n\n```python\n{KERNEL}```\n"
    )
    plan, result = session()
    session(verdicts=judged(0.5, Tier.FAST))
    (old,) = prompts()
    session(close=True)
    plan, result = session(close=close, verdicts=judged(Status.INCORRECT_NUMERICAL, Tier.FINAL))
    assert result.reason is (StopReason.CLOSED if close else StopReason.WAITING)
    assert not result.passed
    (new,) = prompts()
    assert new != old
    assert "values are wrong" in new.read_text()
    with api.load_run(plan.folder) as reader:
        assert of_run(reader).prompt == new.read_text()
        assert len(reader.notes("final")) == 1
    plan, result = session()
    assert prompts() == [new]
    assert result.waiting == (str(new),)
    assert "values are wrong" not in (folder / old.name.replace("prompt", "withdrawn")).read_text()
