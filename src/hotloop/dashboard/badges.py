"""Short words on runs and verdicts, with their colour."""

from __future__ import annotations

from hotloop.core.verdict import Verdict
from hotloop.dashboard.state import Activity, RunState, activity
from hotloop.report import display
from hotloop.report.endings import open_status
from hotloop.report.sections import Badge

_ACTIVITIES = {
    Activity.RUNNING: "live",
    Activity.ENDED: "plain",
    Activity.WAITING: "warn",
    Activity.FAILED: "bad",
    Activity.GONE: "warn",
    Activity.SILENT: "warn",
}


def activity_badge(state: RunState) -> Badge:
    """Return whether anything goes on in a run, and why it ended."""
    found = activity(state)
    reason = "" if state.stop is None else str(state.stop.get("reason") or "")
    told = f"ended: {display.one_line(reason, limit=30)}" if found is Activity.ENDED else found
    return Badge(str(told), _ACTIVITIES[found])


def device_badge(state: RunState) -> Badge:
    """Return where kernels are judged: no number is shown without it."""
    if not state.is_timed:
        return Badge("CPU: nothing is timed", "warn")
    gpu = None if state.info is None else state.info.environment.get("gpu")
    return Badge(display.one_line(gpu or state.device, limit=60), "plain")


def verdict_badge(state: RunState, verdict: Verdict | None) -> Badge:
    """Return a verdict's status, or what stands in its place."""
    if verdict is None:
        return Badge(open_status(ended=state.has_ended), "plain")
    return Badge(verdict.status.value, "good" if verdict.passed else "bad")


def best_words(state: RunState) -> str:
    """Return what the best kernel came to so far, with the tier that says so."""
    best = state.best
    if best is None:
        return "nothing passed yet"
    if not state.is_timed:
        cost = "unknown" if best.objective is None else f"{best.objective:.4g}"
        return f"correct, static cost {cost}"
    final = state.final
    if final is not None and final.passed and final.performance is not None:
        claimed = bool(final.performance.speedup_ci)
        ratio = display.least_speedup(final.performance) if claimed else "ratio not claimed"
        return f"{display.ms(final.performance.latency_ms)}, {ratio}"
    performance = None if best.verdict is None else best.verdict.performance
    told = display.least_speedup(performance)
    if final is not None and not final.passed:
        return f"final tier: {final.status.value}"
    return f"{told} (fast tier, no result)"
