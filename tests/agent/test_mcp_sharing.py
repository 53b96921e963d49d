"""The SDK's own client again: calls that are cancelled, and runs that another server started."""

import os
import subprocess
import sys

import anyio
import pytest
from test_mcp_client import KERNEL, ROW_SUM, call, finished, next_prompt, serving

from hotloop.agent.run_holder import holder_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "row_sum.py").write_text(ROW_SUM)
    return tmp_path


def test_a_call_that_is_cancelled_ends_and_the_next_one_is_judged(workspace):
    asked = {"problem": "row_sum.py", "source": KERNEL}

    async def talk():
        async with serving(workspace) as client:
            text, _ = await call(client, "verify_kernel", **asked, wait_s=0)
            assert "goes on; call job with job_id job-1" in text
            text, is_error = await call(client, "verify_kernel", **asked, wait_s=0)
            assert "job-2" in text
            for job in ("job-2", "job-1"):
                text, is_error = await call(client, "cancel_job", job_id=job)
                assert not is_error, text
                assert text == f"{job} (verify_kernel row_sum) is cancelled"
                text, is_error = await call(client, "job", job_id=job)
                assert is_error
                assert text.endswith("was cancelled; start the work again")
            text, is_error = await finished(client, "verify_kernel", **asked)
            assert text.startswith("PASSED"), text
            text, is_error = await call(client, "cancel_job", job_id="job-3")
            assert not is_error
            assert "was done already" in text
            text, is_error = await call(client, "cancel_job", job_id="job-9")
            assert is_error
            assert "there is no job 'job-9'" in text

    anyio.run(talk)


def test_a_run_of_another_server_is_seen_answered_and_stopped(workspace):
    run = {"name": "one", "problem": "row_sum.py", "budget": "20m"}

    async def talk():
        async with serving(workspace) as first, serving(workspace) as second:
            text, is_error = await call(first, "start_run", **run)
            assert not is_error, text
            assert (await call(second, "list_runs"))[0] == "one: running"
            assert await next_prompt(second, "one") == await next_prompt(first, "one")
            text, is_error = await call(second, "start_run", **run)
            assert is_error
            assert "is going on" in text
            text, is_error = await call(second, "stop_run", run="one")
            assert not is_error, text
            assert (await call(first, "list_runs"))[0] == "one: not running"
            text, is_error = await call(second, "start_run", **run)
            assert not is_error, text
            assert (await call(first, "list_runs"))[0] == "one: running"

    anyio.run(talk)


def test_a_run_of_a_terminal_is_seen_and_stopped(workspace):
    words = ["optimize", "row_sum.py", "--device", "cpu", "--model", "dir:answers", "--out",
             "runs/theirs", "--budget", "20m"]  # fmt: skip
    (workspace / "answers").mkdir()
    terminal = subprocess.Popen(
        [sys.executable, "-m", "hotloop", *words],
        cwd=workspace, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "NO_COLOR": "1"},
    )  # fmt: skip

    async def talk():
        async with serving(workspace) as client:
            while terminal.poll() is None and holder_of(workspace / "runs" / "theirs") is None:
                await anyio.sleep(0.1)
            while (await call(client, "list_runs"))[0].startswith("no runs"):
                await anyio.sleep(0.1)
            assert (await call(client, "list_runs"))[0] == "theirs: running"
            text, is_error = await call(client, "stop_run", run="theirs")
            assert not is_error, text
            assert (await call(client, "list_runs"))[0] == "theirs: not running"

    try:
        anyio.run(talk)
        _, said = terminal.communicate(timeout=20)
    finally:
        terminal.kill()
        terminal.wait()
    assert "Traceback" not in said
    assert terminal.returncode in (1, 4, 130), said
