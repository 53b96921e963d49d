"""`best/` is there while a kernel of the run passes, and not under that name once it is refused."""

import json
from dataclasses import replace

import pytest
from model_run import info_of, plan_in
from test_withdrawn_prompt import KERNEL

from hotloop.api import run_plan
from hotloop.core.attempt import SHORT_FINAL
from hotloop.core.graph import AttentionSpec, Graph
from hotloop.core.verdict import Status, Tier
from hotloop.suite.standing import is_finished
from hotloop.testing.fakes import RecordingListener, fake_verdict
from hotloop.verify.bundle import Verdicts, write_verdicts

SIZES = AttentionSpec(
    B=1, H=2, Hkv=2, S=32, Skv=32, D=16, dtype="float32", scale=0.25, mask_mod=None, buffers=(),
    score_mod=Graph(nodes=(), outputs=()),
)  # fmt: skip


class Closed:
    """A run with one kernel whose judge is elsewhere; each session is closed."""

    def __init__(self, folder):
        self.folder = folder
        self.best, self.refused = folder / "run" / "best", folder / "run" / "best.refused"
        self.session()
        info = replace(info_of(self.plan.problem), device="cuda", attention=SIZES)
        self.session(infos={self.plan.problem.id: info})
        (prompt,) = (folder / "answers").glob("*.prompt.md")
        reply = prompt.with_name(prompt.name.replace(".prompt.", ".reply."))
        reply.write_text(f"A copy.\n\n```python\n{KERNEL}```\n")
        self.session()
        self.session(verdicts=self.judged(0.5, Tier.FAST))
        self.session(close=True)

    def session(self, *, short=True, close=False, **content):
        given = {"device": "cuda", "judge": "bundle", "no_wait": True, "strategy": "refine"}
        plan = plan_in(self.folder, **given, parallel=1, close=close)
        self.plan = replace(plan, spec=replace(plan.spec, options={SHORT_FINAL: short}))
        if content:
            path = self.folder / "verdicts"
            write_verdicts(path, Verdicts(**content))
            self.plan = replace(self.plan, verdicts=path)
        self.listener = RecordingListener()
        self.result = run_plan(self.plan, listen=self.listener)

    def judged(self, outcome, tier, *, short=False):
        verdict = fake_verdict(outcome, self.result.attempts[0].candidate_id, tier=tier)
        return (replace(verdict, problem_id=self.plan.problem.id, short=short),)

    def passes_short(self):
        self.session(close=True, verdicts=self.judged(0.5, Tier.FINAL, short=True))

    def told(self):
        messages = [payload["message"] for payload in self.listener.payloads("warning")]
        return [message for message in messages if "passes any more" in message]


@pytest.fixture
def closed(tmp_path):
    return Closed(tmp_path)


def test_a_kernel_that_the_full_tier_refuses_is_best_no_more(closed):
    closed.passes_short()
    assert json.loads((closed.best / "verdict.json").read_text())["status"] == "PASSED"
    closed.refused.mkdir()
    (closed.refused / "older.py").write_text("")
    closed.session(short=False, close=True)
    assert (closed.best.is_dir(), closed.told()) == (True, []), "it is asked for, and stands so far"
    refusal = closed.judged(Status.INCORRECT_NUMERICAL, Tier.FINAL)
    closed.session(short=False, close=True, verdicts=refusal)
    assert not closed.result.passed
    assert not closed.best.exists()
    assert (closed.refused / "kernel.py").is_file()
    assert not (closed.refused / "older.py").exists()
    (line,) = closed.told()
    assert str(closed.refused) in line
    closed.session(short=False, close=True)
    assert (closed.refused.is_dir(), closed.told()) == (True, [])


def test_a_kernel_that_the_full_tier_passes_stays(closed):
    closed.passes_short()
    closed.session(short=False, close=True)
    closed.session(short=False, close=True, verdicts=closed.judged(0.5, Tier.FINAL))
    assert closed.result.passed
    assert json.loads((closed.best / "verdict.json").read_text())["short"] is False
    assert (closed.refused.exists(), closed.told()) == (False, [])


def test_a_run_that_was_killed_before_the_folder_was_renamed_is_not_finished(closed):
    refusal = closed.judged(Status.INCORRECT_NUMERICAL, Tier.FINAL, short=True)
    closed.session(close=True, verdicts=refusal)
    assert is_finished(closed.plan)
    closed.best.mkdir()
    assert not is_finished(closed.plan)
    closed.session(close=True)
    assert is_finished(closed.plan)
    assert closed.refused.is_dir()
