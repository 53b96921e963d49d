"""What a verdict says of each checked call, its evidence, and what a model is told of it."""

from __future__ import annotations

import json

from hotloop.core.verdict import CaseResult, Evidence, Rigour, Verdict
from hotloop.dashboard.state import RunState
from hotloop.prompts.feedback import Judged, make_feedback
from hotloop.report import display
from hotloop.report.tables import Table

DETAIL_CHARACTERS = 20_000
CASES = 200
_HEAD = (
    "workload", "values", "output", "held to", "result", "rule", "error (RMSE)", "eager's",
    "times eager", "wrong elements", "worst at",
)  # fmt: skip
_HELD_TO = {
    Rigour.FULL: "all rules",
    Rigour.ROUGH: "wider bounds",
    Rigour.GROSS: "NaN, Inf, gross errors",
    Rigour.CUT: "all rules, TF32 cut",
    None: "not recorded",
}


def cases_table(verdict: Verdict) -> Table | None:
    """Return the checked calls, failed ones first; None where none was made."""
    if verdict.correctness is None or not verdict.correctness.cases:
        return None
    cases = sorted(verdict.correctness.cases, key=lambda case: case.passed)
    note = f"{len(cases) - CASES} more calls are not shown." if len(cases) > CASES else ""
    return Table(
        title="Checked calls",
        head=_HEAD,
        rows=[_case(case) for case in cases[:CASES]],
        labels=6,
        note=note,
        is_long=True,
    )


def _case(case: CaseResult) -> tuple[str, ...]:
    times = case.rmse / case.eager_rmse if case.rmse is not None and case.eager_rmse else None
    return (
        display.one_line(case.workload, limit=40),
        display.one_line(case.profile, limit=40),
        display.one_line(case.output, limit=40),
        _HELD_TO[case.rigour],
        "passed" if case.passed else "failed",
        display.one_line(case.rule or "", limit=30),
        "not finite" if case.rmse is None else f"{case.rmse:.3g}",
        f"{case.eager_rmse:.3g}",
        "" if times is None else f"{times:.3g}",
        f"{case.mismatches:,}",
        "" if case.passed else str(list(case.worst_index)),
    )


def detail_texts(evidence: Evidence | None) -> list[tuple[str, str]]:
    """Return the details of a verdict's evidence as texts by name."""
    if evidence is None:
        return []
    found = []
    for name, value in evidence.details.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) > DETAIL_CHARACTERS:
            text = f"{text[:DETAIL_CHARACTERS]}\n... {len(text) - DETAIL_CHARACTERS:,} more"
        found.append((display.one_line(name, limit=40), display.visible(text)))
    return found


def told_to_model(verdict: Verdict, state: RunState) -> str:
    """Return a failure in words, as a model is told of it; empty for one that passed."""
    if verdict.passed:
        return ""
    judged = Judged(verdict=verdict, candidate=None, problem=state.problem, info=state.info)
    feedback = make_feedback(judged)
    return display.visible(f"{feedback.headline}\n\n{feedback.text}".strip())
