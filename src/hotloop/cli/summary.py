"""What `optimize` says before and after a run: the opening lines, the result, how to repeat it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotloop.cli import wording
from hotloop.cli.earlier_run import LARGER, go_on_command
from hotloop.core.command_line import quoted
from hotloop.core.verdict import Status
from hotloop.engine import RunResult, StopReason
from hotloop.plan import BEST_FOLDER, SearchPlan
from hotloop.problems import describe_sizes
from hotloop.problems.precision import describe_precision
from hotloop.store.sqlite import JOURNAL_FILE

BUILTIN_NOTICE = (
    "generator: builtin (human-written kernel templates and a tuner; no model, no key). "
    "A language model plugs in with --model PRESET:NAME (see 'Plug in a model' in the README)."
)
FILES_SHOWN = 5
"""Of those that await an answer; the rest is counted."""
_WHY = {
    StopReason.WALL: "the budget is spent",
    StopReason.CANDIDATES: "the candidates allowed were tried",
    StopReason.CALLS: "the model calls allowed were made",
    StopReason.TOKENS: "no further call fits the tokens allowed",
    StopReason.USD: "no further call fits the dollars allowed",
    StopReason.CLOSED: "the search was closed",
    StopReason.WAITING: "only answers from outside are missing",
    StopReason.EXHAUSTED: "nothing is left to try",
    StopReason.INTERRUPTED: "interrupted",
    StopReason.FAILED: "failed",
}


def opening(plan: SearchPlan, *, is_default_model: bool) -> list[str]:
    """Return the lines that say what is about to happen."""
    lines = [BUILTIN_NOTICE] if is_default_model else []
    if plan.config.model is not None:
        lines.append(_model_line(plan))
    lines.append(f"problem: {plan.problem.name} ({describe_sizes(plan.problem)})")
    if plan.precision is not None:
        lines.append(describe_precision(plan.problem))
    if plan.spec.device == "cpu":
        lines.append("device: cpu: kernels are checked and compiled; nothing is timed here")
    earlier = " (going on with an earlier run)" if (plan.folder / JOURNAL_FILE).exists() else ""
    lines.append(f"run folder: {plan.folder}{earlier}")
    return lines


def closing(plan: SearchPlan, result: RunResult) -> str:
    """Return the result in one line, and below it where it lies and how to repeat it."""
    tried = sum(1 for a in result.attempts if a.verdict is not None)
    why = _WHY[result.reason]
    is_waiting = result.reason is StopReason.WAITING
    is_told = is_waiting and bool(result.waiting or plan.judge.is_bundle)
    if result.detail is not None and not is_told:
        why += f" ({result.detail})"
    effort = f"{tried} candidate{'' if tried == 1 else 's'} in {result.spent_s:.0f} s"
    if plan.config.model is not None:
        effort += f", {_calls(result)} of {plan.config.model}"
    effort += f"; {why}"
    verdict, command = result.final or result.fast, go_on_command(plan, result.reason)
    if is_waiting:
        return "\n".join((f"waiting: {effort}", *_waiting(plan, result)))
    if not result.passed or verdict is None:
        return "\n".join(
            (f"no kernel to report: {effort}", *_why_not(result), _go_on(plan, result))
        )
    return "\n".join(
        (
            f"attempt {result.best_attempt_id}: {wording.outcome(verdict)}; {effort}",
            f"kernel:    {_kernel(plan)}",
            f"reproduce: {plan.verify_command()}",
            *([f"go on:     {command}"] if result.reason in LARGER else []),
        )
    )


def _model_line(plan: SearchPlan) -> str:
    config = plan.config
    limits = [f"{config.parallel} call{'' if config.parallel == 1 else 's'} at a time"]
    if config.max_usd is not None:
        limits.append(f"at most ${config.max_usd:g}")
    if config.max_tokens is not None:
        limits.append(f"at most {config.max_tokens:,} tokens")
    return (
        f"generator: {config.model} writes {config.language} ({', '.join(limits)}); it is sent the "
        "reference, its sizes, the device's name and verdicts"
    )


def _calls(result: RunResult) -> str:
    count = f"{result.calls} call{'' if result.calls == 1 else 's'}"
    if not result.calls:
        return count
    return f"{count} ({wording.costs(tokens=result.tokens, usd=result.usd)})"


def _waiting(plan: SearchPlan, result: RunResult) -> list[str]:
    """Return the files to be answered and the command that goes on."""
    shown = [f"  {wording.plain(name, limit=300)}" for name in result.waiting[:FILES_SHOWN]]
    rest = len(result.waiting) - len(shown)
    lines = []
    if result.fast is not None:
        told = wording.outcome(result.fast)
        lines.append(f"best so far: attempt {result.best_attempt_id}: {told}")
    lines += [f"to be answered: {len(result.waiting)}", *shown] if shown else []
    lines += [f"  ... and {rest} more"] if rest > 0 else []
    command = plan.search_command()
    if plan.judge.is_bundle:
        bundle = ["hotloop", "bundle", str(plan.folder), "--out", "run.bundle"]
        lines.append(f"what awaits the judge: {quoted(bundle)}")
        lines.append("on the GPU machine: hotloop judge --bundle run.bundle --out run.verdicts")
        command += " --verdicts run.verdicts"
    return [*lines, f"go on: {command}"]


def _kernel(plan: SearchPlan) -> Path:
    """Return the kernel's path: CUDA source has its own suffix, unless Python builds it inline."""
    cuda = plan.folder / BEST_FOLDER / "kernel.cu"
    return cuda if cuda.exists() else cuda.with_suffix(".py")


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


def _go_on(plan: SearchPlan, result: RunResult) -> str:
    look = f"look closer: {quoted(['hotloop', 'show', plan.folder])}"
    if result.reason is StopReason.EXHAUSTED and result.fast is None:
        return look  # the same command finds nothing more
    return f"{look}; go on: {go_on_command(plan, result.reason)}"


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
        "model": plan.config.model,
        "language": plan.spec.language,
        "strategy": plan.spec.strategy,
        "seed": plan.spec.seed,
        "stop_reason": result.reason.value,
        "stop_detail": result.detail,
        "attempts": len(result.attempts),
        "spent_s": result.spent_s,
        "setup_s": result.setup_s,
        "calls": result.calls,
        "tokens": result.tokens,
        "usd": result.usd,
        "waiting": list(result.waiting),
        "best_attempt_id": result.best_attempt_id,
        "verdict": verdict,
        "verify_command": plan.verify_command(),
    }
