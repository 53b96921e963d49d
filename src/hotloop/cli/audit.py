"""`hotloop audit`: would the checks of a problem notice a kernel that does not do the work?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hotloop.api import DEFAULT_ISOLATION
from hotloop.cli import options
from hotloop.cli.output import Output
from hotloop.core.audit import Audit, Trial, TrialState
from hotloop.core.problem import Problem
from hotloop.plan import find_problem
from hotloop.problems.precision import describe_precision
from hotloop.search_options import ProblemOptions
from hotloop.verify import LocalVerifier, find_device

_STATE_ORDER = (TrialState.ACCEPTED, TrialState.SAME, TrialState.CAUGHT)


def audit(
    problem: options.Problem,
    device: options.Device = "auto",
    set_: options.Set = None,
    precision: options.Precision = None,
    data: options.Data = None,
    min_isolation: options.MinIsolation = None,
    json: options.Json = False,
) -> None:
    """Say which fakes the checks of PROBLEM refuse, and whether its speed-ups mean anything."""
    output = Output(as_json=json)
    where = find_device(device)
    wanted: ProblemOptions = {
        "settings": options.settings_of(set_),
        "data": options.data_of(problem, data),
        "precision": precision,
    }  # fmt: skip
    found = find_problem(problem, where, wanted)
    if precision is not None:
        output.say(describe_precision(found))
    verifier = LocalVerifier(where, min_isolation=min_isolation or DEFAULT_ISOLATION)
    output.say("loading the reference and trying fakes")
    try:
        made = verifier.audit(found)
    finally:
        verifier.close()
    output.result(record(found, where, made), table(found, where, made))


def record(problem: Problem, device: str, audit: Audit) -> dict[str, Any]:
    """Return the JSON object of `audit --json`."""
    return {
        "problem": problem.name,
        "problem_id": problem.id,
        "device": device,
        "rankable": audit.rankable,
        "audit": audit,
    }


def table(problem: Problem, device: str, audit: Audit) -> str:
    """Return the audit as text: the answer, why, and what became of each fake."""
    answer = "can be ranked" if audit.rankable else "is NOT ranked"
    lines = [f"{problem.name} on {device} {answer} (audit {audit.seconds:.1f} s)"]
    lines += [f"  reason   {text}" for text in audit.reasons]
    lines += [f"  finding  {text}" for text in audit.findings]
    for name, share in audit.spread_frac.items():
        lines.append(f"  {name}: its values spread by {share:.3g} of their root mean square")
    tried = [t for t in audit.trials if t.state is not TrialState.SKIPPED]
    tried.sort(key=lambda t: _STATE_ORDER.index(t.state))
    rows = [("fake", "state", "caught by", "passed on"), *map(_row, tried)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines.append("")
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join((*cells, row[3])).rstrip())
    return "\n".join((*lines, *_not_tried(audit.trials)))


def _row(trial: Trial) -> tuple[str, str, str, str]:
    name = f"{trial.group}: {trial.name}"
    return name, trial.state.value, trial.caught_by or "-", ", ".join(_passed(trial))


def _not_tried(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield a line for each reason why fakes were left out, with how many of which group."""
    reasons: dict[str, Counter[str]] = {}
    for trial in trials:
        if trial.state is TrialState.SKIPPED:
            reasons.setdefault(trial.why or "no reason given", Counter())[trial.group] += 1
    if reasons:
        count = sum(map(Counter.total, reasons.values()))
        yield f"\nnot tried: {count} of {len(trials)} fakes; they say nothing of the checks"
    for why, groups in reasons.items():
        yield f"  {why}: " + ", ".join(f"{n} of {group}" for group, n in groups.items())


def _passed(trial: Trial) -> Iterator[str]:
    for where in trial.passed:
        yield f"{where} (the right values)" if where in trial.same else where


def audit_line(audit: Audit | None) -> str | None:
    """Return one line on what an audit found; None where there is nothing to say."""
    if audit is None or not (audit.reasons or audit.findings):
        return None
    told: Sequence[str] = audit.reasons or audit.findings
    rest = len(audit.reasons) + len(audit.findings) - 1
    more = f" (and {rest} more: hotloop audit shows all)" if rest else ""
    if audit.reasons:
        return f"audit: a speed-up here is not ranked: {told[0]}{more}"
    return f"audit: {told[0]}{more}"
