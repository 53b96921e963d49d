"""The tools that ask the judge: load a problem, judge a kernel, fetch or cancel what takes long."""

from __future__ import annotations

from collections.abc import Callable

from hotloop.agent import answers
from hotloop.agent.asked import find_candidate, find_tier
from hotloop.agent.desk import DEFAULT_WAIT_S, Desk
from hotloop.agent.jobs import Job
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.core.verdict import Stage, Tier
from hotloop.errors import HotloopError

_SHOWS_NOTHING = frozenset({Stage.EXTRACT, Stage.STATIC, Stage.COMPILE})
"""Stages that no held-out data is in yet."""


def judging(desk: Desk) -> tuple[Callable[..., str], ...]:
    """Return the tools."""

    def load_problem(
        problem: str,
        settings: str = "",
        precision: str | None = None,
        wait_s: float = DEFAULT_WAIT_S,
    ) -> str:
        """Load and audit a problem; return its reference, baselines and least possible time.

        Args:
            problem: a problem file in the workspace, or a name like kernelbench/1/19.
            settings: module-level constants of the file to replace, like N=4096,DTYPE=float16.
            precision: as_shipped, strict or tf32: by which kernels and baselines are judged; left
                out, the problem's own. Under another one it is another problem.
            wait_s: seconds to wait, at most 50; then a job's handle is returned.
        """
        found = desk.workspace.problem(problem, settings, precision)

        def work() -> str:
            text = answers.problem_text(found, desk.judge.load(found))
            return answers.with_precision_line(text, found, precision)

        return _answer(desk.jobs.start(f"load_problem {found.name}", work), wait_s)

    def verify_kernel(
        problem: str,
        source: str = "",
        file: str = "",
        tier: str = Tier.FAST.value,
        settings: str = "",
        precision: str | None = None,
        wait_s: float = DEFAULT_WAIT_S,
    ) -> str:
        """Judge one kernel: compile it, check its numbers on secret inputs, time it.

        Args:
            problem: as for load_problem.
            source: the text of the kernel file; or
            file: a kernel file (.py, .cu) in the workspace.
            tier: fast, or final (fresh seeds, held-out sizes, sanitizers; needs a GPU). There are
                few final verdicts of a problem; the answer says how many are left.
            settings: as for load_problem.
            precision: as for load_problem.
            wait_s: seconds to wait, at most 50; then a job's handle is returned.
        """
        found = desk.workspace.problem(problem, settings, precision)
        candidate = find_candidate(desk.workspace, source, file)
        wanted = find_tier(tier, desk.workspace.device)

        def work() -> str:
            text = (_final if wanted is Tier.FINAL else _fast)(desk, found, candidate)
            return answers.with_precision_line(text, found, precision)

        return _answer(desk.jobs.start(f"verify_kernel {found.name}", work), wait_s)

    return load_problem, verify_kernel


def following(desk: Desk) -> tuple[Callable[..., str], ...]:
    """Return the tools for calls that take long."""

    def job(job_id: str, wait_s: float = DEFAULT_WAIT_S) -> str:
        """Return the answer of a call that was not done in time.

        Args:
            job_id: its handle.
            wait_s: seconds to wait, at most 50.
        """
        return _answer(desk.jobs.find(job_id), wait_s)

    def cancel_job(job_id: str) -> str:
        """Give up a call that goes on; the judge it had starts anew with the next call.

        Args:
            job_id: its handle.
        """
        found = desk.jobs.find(job_id)
        if desk.jobs.cancel(found):
            return f"{found.id} ({found.what}) is cancelled"
        return f"{found.id} ({found.what}) was done already; call job for its answer"

    return job, cancel_job


def _fast(desk: Desk, problem: Problem, candidate: Candidate) -> str:
    verdict = desk.judge.verify(problem, candidate, Tier.FAST)
    return answers.verdict_answer(verdict, candidate, problem, desk.judge.load(problem))


def _final(desk: Desk, problem: Problem, candidate: Candidate) -> str:
    """Return a final verdict with the number of looks that are left."""
    desk.looks.take(problem)
    try:
        verdict = desk.judge.verify(problem, candidate, Tier.FINAL)
    except HotloopError:
        desk.looks.give_back(problem)
        raise
    if verdict.stage in _SHOWS_NOTHING:
        desk.looks.give_back(problem)
    told = answers.verdict_answer(verdict, candidate, problem, desk.judge.load(problem))
    return f"{told}\n\n{desk.looks.told(problem)}"


def _answer(job: Job, wait_s: float) -> str:
    answer = job.answer(wait_s)
    if answer is not None:
        return answer
    return f"{job.what} goes on; call job with job_id {job.id}"
