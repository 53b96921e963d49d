"""Classes of operators, from a problem's title, and classes of failures, from verdicts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from hotloop.core.attempt import FREE_ACTIONS, Action
from hotloop.core.verdict import Verdict
from hotloop.suite.origin import is_the_start

if TYPE_CHECKING:
    from hotloop.suite.figures_rows import RunRow

UNCLASSIFIED = "unclassified"
EXAMPLES = 3
"""Problems that are named with a class of failures."""
_LEVEL_1 = (
    (r"conv", "conv"),
    (r"matmul|matri(x|ces)|DotProductAttention", "matmul"),
    (r"^cum|cumsum|cumprod", "cumulative"),
    (r"Loss$", "loss"),
    (r"Norm_?$", "norm"),
    (r"Pooling|_over_a_dimension$", "reduction"),
)
"""What a title of level 1 says of its class, first match first; what is left is an activation."""
_NORM = re.compile(r"(Batch|Group|Instance|Layer)Norm")
_REDUCTION = re.compile(r"Pool|Softmax|LogSumExp|Mean|Max\b|Min\b|Sum\b")


def operator_class(level: int, title: str) -> str:
    """Return the class of a KernelBench problem, from its title alone (`19_ReLU`).

    Level 1: `matmul`, `conv`, `activation`, `norm`, `reduction` (pooling included), `loss`,
    `cumulative`. Other levels: the leading operator and the heaviest kind of what follows it, such
    as `conv_transpose+norm` or `matmul+elementwise`. `unclassified` without a title.
    """
    words = re.sub(r"^\d+_", "", title)
    if not words:
        return UNCLASSIFIED
    if level == 1:
        found = (name for pattern, name in _LEVEL_1 if re.search(pattern, words, re.IGNORECASE))
        return next(found, "activation")
    lead, _, tail = words.partition("_")
    return f"{_lead(lead)}+{_tail(tail.replace('_', ' '))}"


def failure_classes(rows: Iterable[RunRow]) -> list[dict[str, Any]]:
    """Return the failed verdicts of what a model was asked for, of both tiers, by class.

    The most common class first. `attempts` counts verdicts, `problems` the problems that had one,
    `unsolved` those of them that have no kernel that passed the final tier. The kernels that runs
    began from are not among them.
    """
    return _by_class(rows, _failed)


def start_failure_classes(rows: Iterable[RunRow]) -> list[dict[str, Any]]:
    """Return the failed verdicts of the kernels that runs began from, as `failure_classes` does.

    Nobody was asked for these: mixed with the others, a model would be charged with another
    one's kernels.
    """
    return _by_class(rows, _failed_starts)


def _by_class(
    rows: Iterable[RunRow], failed: Callable[[RunRow], list[Verdict]]
) -> list[dict[str, Any]]:
    found: dict[tuple[str, str, str, str], list[RunRow]] = defaultdict(list)
    for row in rows:
        for verdict in failed(row):
            found[_class_of(verdict)].append(row)
    return [
        {
            "status": status,
            "tier": tier,
            "kind": kind,
            "rule": rule or None,
            "attempts": len(hit),
            "problems": len({row.name for row in hit}),
            "unsolved": len({row.name for row in hit if not row.is_solved}),
            "examples": list(dict.fromkeys(row.name for row in hit))[:EXAMPLES],
        }
        for (status, tier, kind, rule), hit in sorted(
            found.items(), key=lambda item: (-len(item[1]), item[0])
        )
    ]


def _failed(row: RunRow) -> list[Verdict]:
    starts = _starts(row)
    written = [a for a in row.attempts if a.action not in FREE_ACTIONS]
    fast = [a.verdict for a in written if a.verdict is not None]
    final = [v for candidate_id, v in row.finals.items() if candidate_id not in starts]
    return [v for v in (*fast, *final) if not v.passed]


def _failed_starts(row: RunRow) -> list[Verdict]:
    starts = _starts(row)
    begun = [a for a in row.attempts if a.action == Action.START]
    fast = [a.verdict for a in begun if a.verdict is not None]
    final = [v for candidate_id, v in row.finals.items() if candidate_id in starts]
    return [v for v in (*fast, *final) if not v.passed]


def _starts(row: RunRow) -> set[str | None]:
    """Return the starting kernel's candidates: with other tunables it is still its author's."""
    return {a.candidate_id for a in row.attempts if is_the_start(a, row.attempts)}


def _class_of(verdict: Verdict) -> tuple[str, str, str, str]:
    assert verdict.evidence is not None, "what did not pass has evidence"
    rule = verdict.evidence.details.get("rule")
    if rule is None and verdict.correctness is not None:
        rule = next((c.rule for c in verdict.correctness.cases if not c.passed), None)
    return verdict.status.value, verdict.tier.value, verdict.evidence.kind, str(rule or "")


def _lead(word: str) -> str:
    if word.startswith("ConvTranspose"):
        return "conv_transpose"
    return "conv" if word.startswith("Conv") else "matmul"


def _tail(words: str) -> str:
    if _NORM.search(words):
        return "norm"
    return "reduction" if _REDUCTION.search(words) else "elementwise"
