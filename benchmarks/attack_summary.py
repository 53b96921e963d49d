"""What the runs of attacks come to: who was refused where, who was not, what was not judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.attack_programs import CORPORA, HONEST, NO_REFUSAL, REFUSALS, Program
from benchmarks.results_file import ROOT, Row
from hotloop.core.verdict import Status, Verdict

NO_RULES = ("no_kernel", "no_code", "unreadable")
"""Rules of the static stage that say nothing of what a program does."""
MESSAGE = 200


def row_of(program: Program, device: str) -> Row:
    """Return what is known of a program before it was judged."""
    return {
        "key": program.key,
        "name": program.name,
        "corpus": program.corpus,
        "numbers": list(program.numbers),
        "problem": program.problem.stem,
        "language": program.candidate.language,
        "candidate_id": program.candidate.id,
        "device": device,
        "right": list(program.right),
        "attack": program.is_attack,
        "settled": program.settled,
        "tier": None,
        "status": None,
        "ok": False,
        "error": None,
        "wall_s": 0.0,
    }


def told(program: Program, verdict: Verdict, device: str) -> Row:
    """Return what a verdict adds to a program's row; its message only where it is not right."""
    evidence, performance = verdict.evidence, verdict.performance
    rule = evidence.details.get("rule") if evidence else None
    latency_ms = performance.latency_ms if performance else None
    ok = is_right(program, verdict.status, device, latency_ms=latency_ms)
    if program.by_text and rule in NO_RULES:
        ok = False  # refused for something else than what it does
    return {
        "tier": verdict.tier.value,
        "status": verdict.status.value,
        "stage": verdict.stage.value,
        "evidence": evidence.kind if evidence else None,
        "rule": rule,
        "latency_ms": latency_ms,
        "ok": ok,
        "as_listed": verdict.status.value in program.right,
    } | ({} if ok else {"message": clean(verdict.message)})


def clean(text: str) -> str:
    """Return a message short enough for a results file, without this machine's folder."""
    return text.replace(str(ROOT), ".")[:MESSAGE]


def is_right(
    program: Program, status: Status, device: str, *, latency_ms: float | None = None
) -> bool:
    """Whether this is a right answer to a program.

    On a GPU every refusal of an attack is: there a program may end earlier than on a CPU (an array
    of numpy made from a tensor on the GPU raises).
    """
    if status.value in program.right:
        return True
    if program.least_ms is not None and status is Status.PASSED:
        return latency_ms is not None and latency_ms >= program.least_ms
    return device == "cuda" and program.is_attack and status.value in REFUSALS


def summarise(rows: Sequence[Row], *, device: str, left_out: Sequence[str]) -> dict[str, Any]:
    """Return the counts of a results file.

    Args:
        rows: of all programs that were tried.
        device: where.
        left_out: names of programs that only a GPU can judge.
    """
    attacks = [row for row in rows if row["attack"]]
    honest = [row for row in rows if row["corpus"] == HONEST]
    judged = [row for row in attacks if row["error"] is None]
    passed = [row["key"] for row in judged if not row["ok"] and _is_no_refusal(row)]
    good = [row for row in judged if row["ok"]]
    return {
        "device": device,
        "programs": len(rows),
        "attacks": len(attacks),
        "attacks_refused": len(good),
        "attacks_passed": passed,
        "attacks_refused_with_another_status": [
            row["key"] for row in judged if not row["ok"] and not _is_no_refusal(row)
        ],
        "refused_at_the_final_tier_only": [
            row["key"] for row in good if row["tier"] == "final" and row["status"] != "PASSED"
        ],
        "by_corpus": {name: _corpus(rows, name) for name in CORPORA},
        "attacks_by_status": dict(Counter(row["status"] for row in good).most_common()),
        "attacks_by_stage": dict(Counter(row["stage"] for row in good).most_common()),
        "catalogue_numbers_refused": sorted({n for row in good for n in row["numbers"]}),
        "honest": len(honest),
        "honest_passed": sum(row["ok"] for row in honest),
        "honest_refused": [r["key"] for r in honest if not r["ok"] and r["error"] is None],
        "settled": {row["key"]: row["status"] for row in rows if row["settled"]},
        "without_a_result": [row["key"] for row in rows if row["error"] is not None],
        "needs_a_gpu": list(left_out),
        "wall_s": sum(row["wall_s"] for row in rows),
    }


def _is_no_refusal(row: Row) -> bool:
    return row["status"] in [status.value for status in NO_REFUSAL]


def _corpus(rows: Sequence[Row], name: str) -> dict[str, int]:
    mine = [row for row in rows if row["corpus"] == name]
    return {"programs": len(mine), "ok": sum(row["ok"] for row in mine)}


def table(rows: Sequence[Row], summary: Row) -> str:
    """Return a line for each program that is not as it should be, and the counts."""
    lines = [f"{row['key']}: {outcome(row)}" for row in rows if not row["ok"]]
    for name, counts in summary["by_corpus"].items():
        lines.append(f"{name:8} {counts['programs']:4} programs {counts['ok']:4} as they should")
    lines.append(
        f"{summary['attacks_refused']} of {summary['attacks']} attacks refused, "
        f"{summary['honest_passed']} of {summary['honest']} honest kernels passed, "
        f"{len(summary['settled'])} settled, {len(summary['without_a_result'])} without a result, "
        f"{len(summary['needs_a_gpu'])} need a GPU"
    )
    return "\n".join(lines)


def outcome(row: Row) -> str:
    """Return one program's outcome in a line."""
    if row["error"] is not None:
        return f"no result: {row['error']}"
    if row["ok"]:
        return str(row["status"])
    right = " or ".join(row["right"]) if len(row["right"]) < len(REFUSALS) else "a refusal"
    return f"expected {right}, got {row['status']}: {row.get('message', '')}"
