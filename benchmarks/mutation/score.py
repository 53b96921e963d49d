"""The mutation score: killed over counted, by class of rules, family and in total.

counted     the oracle saw a wrong value, shape or dtype on an input that the problem allows
killed      ... and the verifier's tier gave any status but PASSED
survivor    ... and it PASSED: a hole, or a value that only other inputs show
not shown   the oracle found no difference: equivalent, or not searched well enough
no run      it raises, hangs or crashes on the first input: refusing it says nothing
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def kind_of(row: Row, tier: str = "verdict") -> str:
    """Return what became of a mutant at a tier: `verdict` (the fast one's) or `final`."""
    outcome = row["oracle"]["outcome"]
    if outcome not in ("shown", "not_shown"):
        return "no_run"
    if tier not in row:
        return "fault"
    passed = row[tier]["status"] == "PASSED"
    if outcome == "shown":
        return "survivor" if passed else "killed"
    outside = row["oracle"]["oob"]
    if outside["loads"] or outside["stores"]:
        return "out_of_bounds_passed" if passed else "out_of_bounds_refused"
    return "not_shown_passed" if passed else "not_shown_refused"


def shares(rows: Iterable[Row], by: str, tier: str = "verdict") -> dict[str, Row]:
    """Return counts and the score for each value of a column."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        value = row.get(by, DEFAULTS.get(by))
        counts.setdefault(str(value), Counter())[kind_of(row, tier)] += 1
    return {name: score(count) for name, count in sorted(counts.items())}


def score(count: Mapping[str, int]) -> Row:
    """Return counts with `counted` and `score_frac`; None where nothing counts."""
    counted = count.get("killed", 0) + count.get("survivor", 0)
    frac = count.get("killed", 0) / counted if counted else None
    return {"counted": counted, "score_frac": frac, **dict(sorted(count.items()))}


DEFAULTS = {"language": "triton", "device": "cpu"}
"""Of rows that were written before there was a choice."""
CRITERION = (
    "a mutant counts when its result on an input that the problem allows is wrong: further from "
    "the float64 golden than 8 times eager's own error on that device, or of another shape or "
    "dtype, or an input was modified; the oracle shares no code with the verifier's gate"
)
NOTES = {
    "cpu": (
        "device cpu, Triton's interpreter: correctness only, nothing is timed",
        CRITERION,
        "RUNTIME_ERROR is mostly an access outside the arguments' memory, which the interpreter "
        "sees and a GPU's fast tier does not: there such a mutant has to show in its values",
        "mutants are of small sizes and in float32; CUDA sources need a GPU",
    ),
    "cuda": (
        "device cuda, compiled kernels: correctness only, nothing is timed, and the outputs of "
        "timed calls, which the product checks too, are not",
        CRITERION,
        "mutants are of small sizes and in float32; several judges share a GPU",
        "final: the final tier's verdict alone on a sample of the counted mutants, chosen by the "
        "seed before anything was judged; a survivor of the fast tier gets one as well",
    ),
}


def summary(rows: Sequence[Row], device: str = "cpu") -> Row:
    """Return the score in total and by each column, and how the killed ones were."""
    total = Counter(kind_of(row) for row in rows)
    killed = [row for row in rows if kind_of(row) == "killed"]
    survivors = [row for row in rows if kind_of(row) == "survivor"]
    return {
        "device": device,
        "tier": "fast",
        "interpreter": device == "cpu",
        "mutants": len(rows),
        "rules": len({(row.get("language"), row["rule"]) for row in rows}),
        "kernels": len({row["substrate"] for row in rows}),
        "total": score(total),
        "by_group": shares(rows, "group"),
        "by_rule": shares(rows, "rule"),
        "by_family": shares(rows, "family"),
        "by_language": shares(rows, "language"),
        "worst_group": _worst(shares(rows, "group")),
        "final": _final(rows),
        "notes": list(NOTES[device]),
        "commits": dict(Counter(row["commit"] for row in rows if "commit" in row).most_common()),
        "survivors": sorted(f"{row['substrate']}/{row['rule']}" for row in survivors),
        "survivors_by_witness": dict(Counter(map(_witness_profile, survivors)).most_common()),
        "killed_by_status": dict(Counter(r["verdict"]["status"] for r in killed).most_common()),
        "killed_by_profile": dict(
            Counter(r["verdict"]["profile"] or "none" for r in killed).most_common()
        ),
        "killed_by_gate_rule": dict(
            Counter(r["verdict"]["rule"] or "none" for r in killed).most_common()
        ),
    }


def _worst(groups: Mapping[str, Row]) -> Row | None:
    """Return the class with the lowest score."""
    counted = [(part["score_frac"], name) for name, part in groups.items() if part["counted"]]
    if not counted:
        return None
    frac, name = min(counted)
    return {"group": name, "score_frac": frac, "counted": groups[name]["counted"]}


def _final(rows: Sequence[Row]) -> Row | None:
    """Return the final tier's score on its sample, None where there is none."""
    sample = [row for row in rows if row.get("sampled")]
    saved = [r for r in rows if kind_of(r) == "survivor" and kind_of(r, "final") == "killed"]
    if not sample:
        return None
    return {
        "total": score(Counter(kind_of(row, "final") for row in sample)),
        "by_group": shares(sample, "group", "final"),
        "by_language": shares(sample, "language", "final"),
        "worst_group": _worst(shares(sample, "group", "final")),
        "survivors_of_fast_killed": len(saved),
    }


def _witness_profile(row: Row) -> str:
    """Return the profile of `nominal: negative/31`."""
    case: str = row["oracle"]["witness"]["case"]
    return case.partition(": ")[2].partition("/")[0]


def table(found: Row) -> str:
    """Return the scores of classes of rules and of languages as text; final ones beside them."""
    final = found.get("final") or {}
    lines = [
        f"{'class':16}{'mutants':>9}{'counted':>9}{'killed':>8}{'survive':>9}{'score':>9}"
        + (f"{'final of':>11}{'score':>9}" if final else "")
    ]
    lines += _lines(found["by_group"], final.get("by_group", {}))
    lines += _lines(found["by_language"], final.get("by_language", {}))
    whole = {"total": final["total"]} if final else {}
    return "\n".join(lines + _lines({"total": found["total"]}, whole))


def _lines(rows: Mapping[str, Row], final: Mapping[str, Row]) -> list[str]:
    lines = []
    for name, part in rows.items():
        mutants = sum(v for k, v in part.items() if k not in ("counted", "score_frac"))
        killed, left = part.get("killed", 0), part.get("survivor", 0)
        line = f"{name:16}{mutants:>9}{part['counted']:>9}{killed:>8}{left:>9}{_share(part):>9}"
        if name in final:
            line += f"{final[name]['counted']:>11}{_share(final[name]):>9}"
        lines.append(line)
    return lines


def _share(part: Row) -> str:
    return "-" if part["score_frac"] is None else f"{part['score_frac']:.2%}"


def witness_text(row: Row) -> str:
    """Return a survivor with its source difference and the oracle's witness."""
    witness = row["oracle"].get("witness")
    head = f"{row['key']}  {row['rule']} ({row['group']})"
    final = f"\n  final tier: {row['final']['status']}" if "final" in row else ""
    seen = row.get("verdict", {}).get("profiles")
    return f"{head}\n{row['diff']}\n  witness: {witness}\n  profiles: {seen}{final}"
