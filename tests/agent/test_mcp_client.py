"""`hotloop mcp` as an agent meets it: the SDK's own client, over stdin and stdout."""

import os
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

CASES = Path(__file__).parents[1] / "report" / "cases"
ROW_SUM = '''"""Sum of rows."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 8, 64


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
'''
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def row_sum(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(values, axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        out = torch.empty(rows, device=x.device, dtype=x.dtype)
        row_sum[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
"""
WRONG = KERNEL.replace("tl.sum(values, axis=0)", "tl.max(values, axis=0)")


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "row_sum.py").write_text(ROW_SUM)
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


@asynccontextmanager
async def serving(root):
    environment = os.environ | {"NO_COLOR": "1", "CUDA_VISIBLE_DEVICES": ""}
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "hotloop", "mcp", "--root", str(root), "--device", "cpu"],
        env=environment,
    )
    async with Client(stdio_client(server)) as client:
        yield client


async def call(client, tool, **arguments):
    """Return the answer's text, and whether it is an error."""
    result = await client.call_tool(tool, arguments)
    return "".join(part.text for part in result.content), bool(result.is_error)


async def finished(client, tool, **arguments):
    """Call, and wait for the job where it takes long."""
    text, is_error = await call(client, tool, **arguments)
    while (handle := re.search(r"goes on; call job with job_id (\S+)", text)) and not is_error:
        text, is_error = await call(client, "job", job_id=handle.group(1))
    return text, is_error


def test_bad_input_is_one_line_and_the_server_lives(workspace):
    async def talk():
        async with serving(workspace) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert {"load_problem", "verify_kernel", "job", "start_run", "next_prompt"} <= names
            half = {"problem": "row_sum.py", "precision": "half"}
            no_such_policy = "--precision: expected one of as_shipped, strict, tf32, got 'half'"
            for tool, arguments, told in (
                ("load_problem", half, no_such_policy),
                ("verify_kernel", {**half, "file": "kernel.py"}, no_such_policy),
                ("start_run", {**half, "name": "a"}, no_such_policy),
                ("load_problem", {"problem": "../../etc/passwd"}, "outside of the workspace"),
                ("load_problem", {"problem": "nowhere.py"}, "no such file"),
                ("verify_kernel", {"problem": "row_sum.py"}, "expected source or file"),
                (
                    "verify_kernel",
                    {"problem": "row_sum.py", "kernel_file": "kernel.py"},
                    "verify_kernel has no argument 'kernel_file'; it takes: problem, source, file",
                ),
                ("list_runs", {"all": True}, "list_runs has no argument 'all'; it takes: none"),
                (
                    "verify_kernel",
                    {"problem": "row_sum.py", "file": "kernel.py", "tier": "final"},
                    "needs a GPU",
                ),
                ("job", {"job_id": "job-99"}, "no job"),
                ("start_run", {"name": "a/b", "problem": "row_sum.py"}, "a run's name"),
                (
                    "start_run",
                    {"name": "a", "problem": "row_sum.py", "model": "dir:/etc"},
                    "expected agent or builtin",
                ),
                (
                    "start_run",
                    {"name": "a", "problem": "row_sum.py", "strategy": "evil:Boom"},
                    "strategy: expected refine",
                ),
                ("load_problem", {"problem": "x" * 3000}, "File name too long"),
                ("best_kernel", {"run": "none"}, "there is no run"),
            ):
                text, is_error = await call(client, tool, **arguments)
                assert is_error, (tool, arguments)
                assert told in text
                assert len(text.splitlines()) == 1
            assert (await call(client, "list_runs"))[0].startswith("no runs yet")

    anyio.run(talk)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kernels_are_judged_by_a_warm_judge(workspace):
    async def talk():
        async with serving(workspace) as client:
            text, is_error = await finished(client, "load_problem", problem="row_sum.py")
            assert not is_error, text
            assert "return x.sum(dim=1)" in text
            text, _ = await finished(
                client, "verify_kernel", problem="row_sum.py", file="kernel.py"
            )
            assert text.startswith("PASSED (fast tier)"), text
            text, is_error = await finished(
                client, "verify_kernel", problem="row_sum.py", source=WRONG
            )
            assert text.startswith("INCORRECT_NUMERICAL"), text
            assert not is_error

    anyio.run(talk)


def test_tools_that_take_a_problem_say_what_precision_there_is(workspace):
    async def talk():
        async with serving(workspace) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            takes_problem = {
                n for n, t in tools.items() if "problem" in t.input_schema["properties"]
            }
            assert takes_problem == {"load_problem", "verify_kernel", "start_run"}
            for name in takes_problem:
                assert "precision" in tools[name].input_schema["properties"]
                assert "precision" not in tools[name].input_schema["required"]
                assert "precision: as" in tools[name].description
            assert "as_shipped, strict or tf32" in tools["load_problem"].description

    anyio.run(talk)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_problem_is_judged_and_searched_under_another_precision(workspace):
    (workspace / "stated.py").write_text(ROW_SUM + '\n\npolicy = {"precision": "tf32"}\n')
    asked = {"problem": "stated.py", "precision": "strict"}
    told = "precision: strict, by --precision; the file states tf32"

    async def talk():
        async with serving(workspace) as client:
            text, _ = await finished(client, "load_problem", **asked)
            assert text.endswith(told)
            text, _ = await finished(client, "load_problem", problem="stated.py")
            assert "by --precision" not in text
            text, _ = await finished(client, "verify_kernel", **asked, file="kernel.py")
            assert text.startswith("PASSED (fast tier)"), text
            assert text.endswith(told)
            arguments = {"name": "mine", "budget": "4m", "max_calls": 1}
            text, is_error = await call(client, "start_run", **arguments, **asked)
            assert not is_error, text
            assert "full precision everywhere" in await next_prompt(client, "mine")
            await call(client, "stop_run", run="mine")
            text, is_error = await call(client, "start_run", **arguments, problem="stated.py")
            assert is_error, "under its own policy it is another problem"

    anyio.run(talk)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_agent_drives_a_whole_optimisation(workspace):
    async def talk():
        async with serving(workspace) as client:
            text, is_error = await call(
                client, "start_run", name="mine", problem="row_sum.py", budget="4m", max_calls=2
            )
            assert not is_error, text
            seen = []
            for source in (WRONG, KERNEL):
                prompt = await next_prompt(client, "mine")
                seen.append(prompt)
                handle = re.match(r"prompt_id: (\S+)", prompt).group(1)
                reply = f"Here it is.\n\n```python\n{source}```\n"
                text, is_error = await call(
                    client, "submit_reply", run="mine", prompt_id=handle, reply=reply
                )
                assert not is_error, text
            assert "INCORRECT_NUMERICAL" not in seen[0]
            assert "values are wrong" in seen[1]  # the second prompt tells what the first came to
            ended = await next_prompt(client, "mine")
            assert ended.startswith("the run has ended"), ended
            status, _ = await call(client, "run_status", run="mine")
            assert "INCORRECT_NUMERICAL" in status
            best, is_error = await call(client, "best_kernel", run="mine")
            assert not is_error, best
            assert "PASSED" in best
            assert "tl.sum(values, axis=0)" in best
            assert (await call(client, "list_runs"))[0] == "mine: not running"
            assert (workspace / "runs" / "mine" / "best" / "kernel.py").is_file()

    anyio.run(talk)


async def next_prompt(client, run):
    while True:
        text, is_error = await call(client, "next_prompt", run=run)
        assert not is_error, text
        if not text.startswith("no prompt yet"):
            return text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_stopped_run_goes_on_with_the_same_arguments(workspace):
    async def talk():
        async with serving(workspace) as client:
            arguments = {"name": "two", "problem": "row_sum.py", "budget": "4m", "max_calls": 1}
            await call(client, "start_run", **arguments)
            prompt = await next_prompt(client, "two")
            text, is_error = await call(client, "start_run", **arguments)
            assert is_error
            assert "is going on" in text
            text, is_error = await call(client, "stop_run", run="two")
            assert not is_error, text
            assert text.startswith("stopped")
            await call(client, "start_run", **arguments)
            assert await next_prompt(client, "two") == prompt  # the same call asks the same

    anyio.run(talk)
