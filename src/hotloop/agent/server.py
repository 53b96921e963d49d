"""The tools of `hotloop mcp`, by the official SDK of the Model Context Protocol.

An agent is a generator here, like any model: problems are loaded and kernels judged by the same
judge, verdicts are told as a model's prompts tell them (nothing held out, no seeds, no limits of
the gate), and a run's budget and journal are those of `hotloop optimize`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from hotloop import __version__
from hotloop.agent import answers
from hotloop.agent.asked import AGENT, check_model, check_strategy
from hotloop.agent.desk import DEFAULT_WAIT_S, Desk
from hotloop.agent.jobs import MAX_WAIT_S
from hotloop.agent.judging import following, judging
from hotloop.agent.strict_server import StrictServer
from hotloop.errors import HotloopError
from hotloop.store.reader import RunReader

INSTRUCTIONS = """\
hotloop verifies GPU kernels. Write a kernel file with a class ModelNew (Triton, Gluon, or CUDA C++
through load_inline) that computes what the reference's Model computes, then:
  load_problem    the reference, its baselines and the least time the hardware allows
  verify_kernel   compile, check against secret inputs, time; says what is wrong and where
  job             the answer of a call that was not done in time; cancel_job gives it up
To search under a budget, where every attempt is kept: start_run with model 'agent', then take
next_prompt, submit_reply, next_prompt ... until the run ends; best_kernel has the result. A run's
prompts carry the verdict of what you sent before.
Speed is only measured on a GPU. A kernel that imitates the result without doing the work is
refused as REWARD_HACK."""

AGENT_STRATEGY = "refine"
"""One attempt after the other, each prompt with the verdict of the last."""
MAX_ERROR_CHARS = 1000


def make_server(desk: Desk) -> MCPServer[Any]:
    """Return a server with all tools; `run("stdio")` serves them."""
    server = StrictServer(
        "hotloop", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR"
    )
    makers = (judging, following, _starting, _answering, _reading)
    tools = [tool for make in makers for tool in make(desk)]
    for work in tools:
        server.tool(structured_output=False)(_one_line_errors(work))
    server.known = {work.__name__: tuple(inspect.signature(work).parameters) for work in tools}
    return server


def _one_line_errors(work: Callable[..., str]) -> Callable[..., str]:
    """Tell errors for bad input and of the machine as the command line does, in one line."""

    @functools.wraps(work)
    def told(*args: Any, **kwargs: Any) -> str:
        try:
            return work(*args, **kwargs)
        except HotloopError as error:
            raise ToolError(_one_line(f"{type(error).__name__}: {error}")) from error
        except OSError as error:  # a name that is too long, a folder that may not be written
            text = f"{error.strerror or error}; expected names and paths that can be used"
            raise ToolError(_one_line(f"{type(error).__name__}: {text}")) from error

    return told


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    joined = " ".join(lines)
    return joined if len(joined) <= MAX_ERROR_CHARS else f"{joined[:MAX_ERROR_CHARS]} ..."


def _starting(desk: Desk) -> tuple[Callable[..., str], ...]:
    def start_run(
        name: str,
        problem: str,
        budget: str = "15m",
        model: str = AGENT,
        max_calls: int | None = None,
        language: str | None = None,
        strategy: str | None = None,
        settings: str | None = None,
        precision: str | None = None,
    ) -> str:
        """Start a search under a budget, or go on with one; every attempt is kept in its folder.

        Args:
            name: the run's folder below runs/.
            problem: as for load_problem.
            budget: like 90s, 15m, 1h30m.
            model: 'agent' (you write the kernels: next_prompt, submit_reply), 'builtin' (templates
                and a tuner), or a model that the server was started with.
            max_calls: ends the search after so many replies.
            language: triton (default), gluon or cuda.
            strategy: refine (an agent's default), sample or hybrid; builtin: tune or random.
            settings: as for load_problem.
            precision: as for load_problem.
        """
        # Refuses what lies outside, and bad input.
        desk.workspace.problem(problem, settings or "", precision)
        check_model(model, desk.models)
        if strategy:
            check_strategy(strategy)
        options = {
            "budget": budget,
            "device": desk.workspace.device,
            "data": desk.workspace.data,
            "model": model,
            "max-calls": None if max_calls is None else str(max_calls),
            "language": language,
            "strategy": strategy or (AGENT_STRATEGY if model == AGENT else None),
            "set": settings or None,
            "precision": precision or None,
            "parallel": "1" if model == AGENT else None,
        }
        folder = desk.runs.start(name, problem, options)
        then = "next_prompt" if model == AGENT else "run_status"
        return f"started: {desk.workspace.told(folder)}; go on with {then}"

    def stop_run(run: str) -> str:
        """End a search, whoever started it; what it has is kept, and start_run goes on with it.

        Args:
            run: its name.
        """
        folder = desk.runs.find(run)
        desk.runs.stop(folder)
        return answers.capped(f"stopped\n\n{desk.runs.said(folder)}")

    return start_run, stop_run


def _answering(desk: Desk) -> tuple[Callable[..., str], ...]:
    def next_prompt(run: str, wait_s: float = DEFAULT_WAIT_S) -> str:
        """Return the prompt that awaits your reply; it has the verdict of what you sent before.

        Args:
            run: its name.
            wait_s: seconds to wait for it, at most 50: kernels are judged meanwhile.
        """
        folder = desk.runs.find(run)
        question = desk.runs.question(folder, max(0.0, min(wait_s, MAX_WAIT_S)))
        if question is not None:
            return answers.capped(f"prompt_id: {question.id}\n\n{question.text}")
        if desk.runs.is_running(folder):
            return "no prompt yet: a kernel is being judged; call next_prompt again"
        return answers.capped(f"the run has ended\n\n{desk.runs.said(folder)}")

    def submit_reply(run: str, prompt_id: str, reply: str) -> str:
        """Answer a prompt of a run: your reasoning if you like, and one fenced block with the file.

        Args:
            run: its name.
            prompt_id: as next_prompt gave it.
            reply: the whole answer.
        """
        desk.runs.reply(desk.runs.find(run), prompt_id, reply)
        return "taken; its verdict stands in the next prompt"

    return next_prompt, submit_reply


def _reading(desk: Desk) -> tuple[Callable[..., str], ...]:
    def list_runs() -> str:
        """Return the runs of this workspace, and which are going on."""
        lines = []
        for name in desk.runs.names():
            goes_on = desk.runs.is_running(desk.runs.find(name))
            lines.append(f"{name}: {'running' if goes_on else 'not running'}")
        return answers.capped("\n".join(lines) or "no runs yet: start_run begins one")

    def run_status(run: str) -> str:
        """Return a run's attempts with their verdicts and times, and what it spent.

        Args:
            run: its name.
        """
        folder = desk.runs.find(run)
        goes_on = "running" if desk.runs.is_running(folder) else "not running"
        with RunReader(folder) as reader:
            return answers.capped(f"{goes_on}\n{desk.run_table(reader)}")

    def attempt(run: str, number: int) -> str:
        """Return one attempt: its verdict and its source.

        Args:
            run: its name.
            number: as in run_status.
        """
        with RunReader(desk.runs.find(run)) as reader:
            return answers.attempt_answer(reader, desk.find_attempt(reader, number))

    def best_kernel(run: str) -> str:
        """Return a run's best kernel: its source, its verdict, its place on the roofline.

        Args:
            run: its name.
        """
        with RunReader(desk.runs.find(run)) as reader:
            return answers.attempt_answer(reader, desk.find_attempt(reader, None))

    return list_runs, run_status, attempt, best_kernel
