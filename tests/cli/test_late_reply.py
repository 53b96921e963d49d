"""A run that waits for its folder says so when an answer there is not read."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from model_run import info_of, plan_in

from hotloop.api import run_plan
from hotloop.engine import StopFlag, StopReason
from hotloop.testing.fakes import RecordingListener
from hotloop.verify.bundle import Verdicts, write_verdicts


def test_an_answer_to_a_withdrawn_prompt_is_told_once_while_the_run_waits(tmp_path):
    given = {"device": "cuda", "judge": "bundle", "strategy": "refine", "parallel": 1}
    plan = plan_in(tmp_path, **given, no_wait=True)
    run_plan(plan)
    info = replace(info_of(plan.problem), device="cuda")
    write_verdicts(tmp_path / "verdicts", Verdicts(infos={plan.problem.id: info}))
    run_plan(replace(plan, verdicts=tmp_path / "verdicts"))
    (prompt,) = (tmp_path / "answers").glob("*.prompt.md")
    old = f"{prompt.name.rpartition('-')[0]}-00000000"

    listener, stop = RecordingListener(), StopFlag()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(run_plan, plan_in(tmp_path, **given), listen=listener, stop=stop)
        (prompt.parent / f"{old}.withdrawn.md").write_text("withdrawn")
        (prompt.parent / f"{old}.reply.md").write_text("too late")
        end_s = time.monotonic() + 10.0
        while not told(listener) and time.monotonic() < end_s:
            time.sleep(0.01)
        time.sleep(0.3)  # it is looked at once more
        stop.request()
        assert waiting.result(timeout=10).reason is StopReason.INTERRUPTED
    (late,) = told(listener)
    assert f"{old}.reply.md" in late


def told(listener):
    messages = [payload["message"] for payload in listener.payloads("warning")]
    return [message for message in messages if "is not read" in message]
