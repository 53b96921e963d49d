"""The mutation score: killed over counted, by class of rules, family and in total.

counted     the oracle saw a wrong value, shape or dtype on an input that the problem allows
killed      ... and the verifier's fast tier gave any status but PASSED
survivor    ... and it PASSED: a hole, or a value that only other inputs show
not shown   the oracle found no difference: equivalent, or not searched well enough
no run      it raises, hangs or crashes on the first input: refusing it says nothing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def kind_of(row: Row) -> str:
    """Return what became of a mutant."""
    outcome = row["oracle"]["outcome"]
    if outcome not in ("shown", "not_shown"):
        return "no_run"
    if "verdict" not in row:
        return "fault"
    passed = row["verdict"]["status"] == "PASSED"
    if outcome == "shown":
        return "survivor" if passed else "killed"
    outside = row["oracle"]["oob"]
    if outside["loads"] or outside["stores"]:
        return "out_of_bounds_passed" if passed else "out_of_bounds_refused"
    return "not_shown_passed" if passed else "not_shown_refused"


def shares(rows: Iterable[Row], by: str) -> dict[str, Row]:
    """Return counts and the score for each value of a column."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row[by], Counter())[kind_of(row)] += 1
    return {name: score(count) for name, count in sorted(counts.items())}


def score(count: Mapping[str, int]) -> Row:
    """Return counts with `counted` and `score_frac`; None where nothing counts."""
    counted = count.get("killed", 0) + count.get("survivor", 0)
    frac = count.get("killed", 0) / counted if counted else None
    return {"counted": counted, "score_frac": frac, **dict(sorted(count.items()))}


NOTES = (
    "device cpu, tier fast, Triton's interpreter: correctness only, nothing is timed",
    "a mutant counts when its result on an input that the problem allows is wrong: further from "
    "the float64 golden than 8 times eager's own error, or of another shape or dtype, or an input "
    "was modified; the oracle shares no code with the verifier's gate",
    "RUNTIME_ERROR is mostly an access outside the arguments' memory, which the interpreter sees "
    "and a GPU's fast tier does not: there such a mutant has to show in its values",
    "mutants are of small sizes and in float32; CUDA rules exist, their mutants were not judged",
)


def summary(rows: Sequence[Row]) -> Row:
    """Return the score in total and by each column, and how the killed ones were."""
    total = Counter(kind_of(row) for row in rows)
    killed = [row for row in rows if kind_of(row) == "killed"]
    return {
        "device": "cpu",
        "tier": "fast",
        "interpreter": True,
        "mutants": len(rows),
        "rules": len({row["rule"] for row in rows}),
        "kernels": len({row["substrate"] for row in rows}),
        "total": score(total),
        "by_group": shares(rows, "group"),
        "by_rule": shares(rows, "rule"),
        "by_family": shares(rows, "family"),
        "notes": list(NOTES),
        "survivors_by_witness": dict(
            Counter(_witness_profile(r) for r in rows if kind_of(r) == "survivor").most_common()
        ),
        "killed_by_status": dict(Counter(r["verdict"]["status"] for r in killed).most_common()),
        "killed_by_profile": dict(
            Counter(r["verdict"]["profile"] or "none" for r in killed).most_common()
        ),
        "killed_by_gate_rule": dict(
            Counter(r["verdict"]["rule"] or "none" for r in killed).most_common()
        ),
    }


def _witness_profile(row: Row) -> str:
    """Return the profile of `nominal: negative/31`."""
    case: str = row["oracle"]["witness"]["case"]
    return case.partition(": ")[2].partition("/")[0]


def table(found: Row) -> str:
    """Return the scores of the classes of rules as text."""
    lines = [f"{'class':16}{'mutants':>9}{'counted':>9}{'killed':>8}{'survive':>9}{'score':>9}"]
    rows = {**found["by_group"], "total": found["total"]}
    for name, part in rows.items():
        mutants = sum(v for k, v in part.items() if k not in ("counted", "score_frac"))
        frac = "-" if part["score_frac"] is None else f"{part['score_frac']:.2%}"
        killed, left = part.get("killed", 0), part.get("survivor", 0)
        lines.append(f"{name:16}{mutants:>9}{part['counted']:>9}{killed:>8}{left:>9}{frac:>9}")
    return "\n".join(lines)


def witness_text(row: Row) -> str:
    """Return a survivor with its source difference and the oracle's witness."""
    witness = row["oracle"].get("witness")
    head = f"{row['key']}  {row['rule']} ({row['group']})"
    return f"{head}\n{row['diff']}\n  witness: {witness}\n  profiles: {row['verdict']['profiles']}"
