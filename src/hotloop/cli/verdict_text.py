"""A verdict for people: the outcome, then what was checked, measured and compiled."""

from __future__ import annotations

from hotloop.cli import timing_text, wording
from hotloop.core.units import format_ms
from hotloop.core.verdict import (
    CaseResult,
    Correctness,
    KernelResources,
    Performance,
    Status,
    Tier,
    Verdict,
)
from hotloop.report.verdict_words import (
    LOOSER,
    exactness,
    is_looser,
    looser_words,
    resource_words,
    skipped_by_reason,
)


def verdict_text(verdict: Verdict) -> str:
    """Return several lines; the first is the outcome."""
    lines = [wording.outcome(verdict)]
    if verdict.correctness is not None:
        lines += _correctness(verdict.correctness)
    if verdict.performance is not None:
        lines += _performance(verdict.performance)
    lines += [line for kernel in verdict.resources for line in _resources(kernel)]
    lines += check_lines(verdict)
    if verdict.deterministic is False:
        lines.append("repeated    calls differ in the last bits (atomics or split reductions)")
    lines.append(
        f"policy      precision {verdict.precision_policy}, shapes {verdict.shape_scope}"
        + (f", mode {verdict.mode}" if verdict.mode else "")
    )
    return "\n".join(lines)


def _correctness(correctness: Correctness) -> list[str]:
    cases = correctness.cases
    failed = [c for c in cases if not c.passed]
    lines = [f"correctness {exactness(correctness)}"]
    lines += [f"            {wording.plain(words)}" for words in looser_words(correctness)]
    others = correctness.other_shapes
    if others:
        right = sum(shape.status is Status.PASSED for shape in others)
        lines.append(
            f"            also right on {right} of {len(others)} other shapes (not asked for)"
        )
    # An error says little where the gate itself did not ask for a small one.
    compared = [c for c in cases if not is_looser(c)] or cases
    worst = failed[0] if failed else max(compared, key=_error_ratio, default=None)
    return [*lines, f"            {_case(worst)}"] if worst is not None else lines


def _error_ratio(case: CaseResult) -> float:
    if case.rmse is None:
        return float("inf")
    return case.rmse / case.eager_rmse if case.eager_rmse else case.rmse


def _case(case: CaseResult) -> str:
    rmse = "not finite" if case.rmse is None else f"{case.rmse:.2e}"
    where = f"{case.workload}, {case.profile} values, output {case.output}"
    rule = f"; rule {case.rule} at {list(case.worst_index)}" if case.rule else ""
    label = "failed" if not case.passed else "worst"
    looser = f"; {LOOSER[case.rigour]}" if case.rigour in LOOSER else ""
    return f"{label}: {where}: rmse {rmse} (PyTorch {case.eager_rmse:.2e}){rule}{looser}"


def _performance(performance: Performance) -> list[str]:
    lines = [
        f"time        {format_ms(performance.latency_ms)} (spread "
        f"{format_ms(performance.spread_ms)}, {performance.samples} samples, "
        f"{performance.timer}, L2 {performance.l2})"
    ]
    for name, ms in sorted(performance.baselines.items()):
        lines.append(
            f"            {name} {format_ms(ms)}{timing_text.ratio_after(performance, name)}"
        )
    lines += timing_text.notes(performance)
    if performance.prepare_ms is not None:
        lines.append(f"prepare     {format_ms(performance.prepare_ms)}, not in the time above")
    if performance.tflops is not None:
        lines.append(f"rate        {performance.tflops:.0f} TFLOP/s of dense work")
    return lines


def check_lines(verdict: Verdict) -> list[str]:
    """Return what ran at the final tier and what did not, by reason; nothing of the fast tier."""
    if verdict.tier is not Tier.FINAL:
        return []
    what = "final tier, short" if verdict.short else "final tier"
    lines = [f"checks      {what}: {', '.join(verdict.checks) or 'none'}"]
    skipped = skipped_by_reason(verdict).items()
    told = (f"            not: {', '.join(names)} ({wording.plain(why)})" for why, names in skipped)
    return [*lines, *told]


def _resources(kernel: KernelResources) -> list[str]:
    compiled = f"compiled    {wording.plain(kernel.name)}: {resource_words(kernel)}"
    return [compiled, *(f"            lost: {wording.plain(text)}" for text in kernel.advice)]
