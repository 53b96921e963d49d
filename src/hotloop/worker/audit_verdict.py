"""What an audit's trials mean: reasons not to rank the problem, and findings.

A fake that passes on all inputs is a reason. Where its values are the reference's own on all of
them, it depends on what the fake stands for: that a result equals its transpose is a property of
the problem, that it equals an input, or stays the same for another, makes the work superfluous.
Each fake says which (`Fake.if_accepted`, `Fake.if_same`). Nothing else decides whether a problem is
ranked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hotloop.core.audit import FakeGroup, Trial, TrialState
from hotloop.worker.audit_fakes import Consequence, Fake

SHOWN = 3
"""Fakes that a line names; the rest is counted."""
Judged = Sequence[tuple[Fake, Trial]]

_ACCEPTED = {
    FakeGroup.OUTPUT: "these outputs pass without the work: {}",
    FakeGroup.READING: "the checks do not see what is left out by reading {}",
    FakeGroup.DEPENDENCE: "the checks do not see the effect of {}",
    FakeGroup.PRECISION: "lower precision passes: {}",
}
_SAME = {
    FakeGroup.OUTPUT: "these are the right result, too: {}",
    FakeGroup.READING: "the right result needs no more than {}",
    FakeGroup.DEPENDENCE: "the right result stays the same for {}",
    FakeGroup.PRECISION: "nothing is lost by lower precision: {}",
}
_RESCUED = "these pass on some values and are caught on others: {}"


def verdict(
    judged: Judged, *, degenerate: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the reasons not to rank a problem, and the findings that do not decide.

    Args:
        judged: each fake that was tried, and what became of it.
        degenerate: reasons found on the values that are timed (`degeneracy.py`).
    """
    reasons = (*degenerate, *_lines(judged, Consequence.REASON))
    rescued = [
        f"{trial.name} ({trial.caught_by})"
        for _, trial in judged
        if trial.state is TrialState.CAUGHT and trial.passed
    ]
    findings = [_RESCUED.format(_list(rescued))] if rescued else []
    return reasons, (*findings, *_lines(judged, Consequence.FINDING))


def _lines(judged: Judged, wanted: Consequence) -> list[str]:
    lines = []
    for group in FakeGroup:
        inside = [(fake, trial) for fake, trial in judged if trial.group is group]
        accepted = [
            t.name for f, t in inside if t.state is TrialState.ACCEPTED and f.if_accepted is wanted
        ]
        same = [t.name for f, t in inside if t.state is TrialState.SAME and f.if_same is wanted]
        lines += [_ACCEPTED[group].format(_list(accepted))] if accepted else []
        lines += [_SAME[group].format(_list(same))] if same else []
    return lines


def _list(names: Sequence[str]) -> str:
    rest = len(names) - SHOWN
    shown = ", ".join(names[:SHOWN])
    return shown if rest <= 0 else f"{shown} and {rest} more"
