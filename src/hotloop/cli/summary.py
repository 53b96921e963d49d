"""What `optimize` says before and after a run: the opening lines, the result, how to repeat it."""

from __future__ import annotations

from typing import Any

from hotloop.cli import wording
from hotloop.core.verdict import Status
from hotloop.engine import RunResult, StopReason
from hotloop.plan import BEST_FOLDER, SearchPlan
from hotloop.problems import describe_sizes
from hotloop.store.sqlite import JOURNAL_FILE

BUILTIN_NOTICE = (
    "generator: builtin (human-written kernel templates and a tuner; no model, no key). "
    "A language model plugs in with --model PRESET:NAME from the next version on."
)
_WHY = {
    StopReason.WALL: "the budget is spent",
    StopReason.CANDIDATES: "the candidates allowed were tried",
    StopReason.EXHAUSTED: "nothing is left to try",
    StopReason.INTERRUPTED: "interrupted",
    StopReason.FAILED: "failed",
}


def opening(plan: SearchPlan, *, is_default_model: bool) -> list[str]:
    """Return the lines that say what is about to happen."""
    lines = [BUILTIN_NOTICE] if is_default_model else []
    lines.append(f"problem: {plan.problem.name} ({describe_sizes(plan.problem)})")
    if plan.spec.device == "cpu":
        lines.append("device: cpu: kernels are checked and compiled; nothing is timed here")
    earlier = " (going on with an earlier run)" if (plan.folder / JOURNAL_FILE).exists() else ""
    lines.append(f"run folder: {plan.folder}{earlier}")
    return lines


def closing(plan: SearchPlan, result: RunResult) -> str:
    """Return the result in one line, and below it where it lies and how to repeat it."""
    tried = sum(1 for a in result.attempts if a.verdict is not None)
    why = _WHY[result.reason]
    if result.detail is not None:
        why += f" ({result.detail})"
    effort = f"{tried} candidate{'' if tried == 1 else 's'} in {result.spent_s:.0f} s; {why}"
    verdict = result.final or result.fast
    if not result.passed or verdict is None:
        return "\n".join((f"no kernel to report: {effort}", *_why_not(result), _go_on(plan)))
    return "\n".join(
        (
            f"attempt {result.best_attempt_id}: {wording.outcome(verdict)}; {effort}",
            f"kernel:    {plan.folder / BEST_FOLDER / 'kernel.py'}",
            f"reproduce: {plan.verify_command()}",
        )
    )


def _why_not(result: RunResult) -> list[str]:
    if result.final is not None:
        return [f"the best one failed its final check: {wording.outcome(result.final)}"]
    if result.fast is not None:
        return ["the best one passed in the loop but had no final check; give it more budget"]
    counts: dict[Status, int] = {}
    for attempt in result.attempts:
        if attempt.verdict is not None:
            counts[attempt.verdict.status] = counts.get(attempt.verdict.status, 0) + 1
    listed = ", ".join(f"{n} {status.value}" for status, n in sorted(counts.items()))
    return [f"verdicts: {listed}"] if listed else []


def _go_on(plan: SearchPlan) -> str:
    return f"look closer: hotloop show {plan.folder}; go on: {plan.search_command()}"


def record(plan: SearchPlan, result: RunResult) -> dict[str, Any]:
    """Return the JSON object of `optimize --json`."""
    verdict = result.final or result.fast
    return {
        "passed": result.passed,
        "folder": str(plan.folder),
        "best_folder": str(plan.folder / BEST_FOLDER) if result.passed else None,
        "problem": plan.problem.name,
        "problem_id": plan.problem.id,
        "device": plan.spec.device,
        "generator": plan.spec.generator,
        "strategy": plan.spec.strategy,
        "seed": plan.spec.seed,
        "stop_reason": result.reason.value,
        "stop_detail": result.detail,
        "attempts": len(result.attempts),
        "spent_s": result.spent_s,
        "setup_s": result.setup_s,
        "best_attempt_id": result.best_attempt_id,
        "verdict": verdict,
        "verify_command": plan.verify_command(),
    }
