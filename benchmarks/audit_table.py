"""What the audits of many problems come to: a summary, a table, and the page in docs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.results_file import Row

SHOWN = 3


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the counts of a results file."""
    done = [row for row in rows if row["error"] is None]
    later: Counter[str] = Counter()
    nominal: Counter[str] = Counter()
    for row in done:
        later.update(str(where) for where in row.get("caught_later", {}).values())
        nominal.update(_kind(name) for name in row.get("passed_nominal", ()))
    return {
        "problems": len(rows),
        "errors": len(rows) - len(done),
        "refused": sum(1 for row in done if row.get("refused")),
        "ranked": sum(1 for row in done if row["rankable"]),
        "not_ranked": sum(1 for row in done if row["rankable"] is False),
        "with_a_fake_that_passes_nominal_values": sum(
            1 for row in done if row.get("passed_nominal")
        ),
        "fakes_passed_nominal_by_kind": dict(nominal.most_common()),
        "fakes_caught_later_by_values": dict(later.most_common()),
        "audit_s": sum(row.get("audit_s", 0.0) for row in done),
        "wall_s": sum(row.get("wall_s", 0.0) for row in rows),
    }


def table(rows: Sequence[Row]) -> str:
    """Return one line a problem that says something, and the counts."""
    lines = []
    for row in rows:
        told = _told(row)
        if told:
            lines.append(f"{row['key']:18} {told}")
    summary = summarise(rows)
    lines.append(
        f"{summary['problems']} problems: {summary['ranked']} ranked, {summary['not_ranked']} not "
        f"({summary['refused']} of them refused), {summary['errors']} without a result"
    )
    return "\n".join(lines)


def document(record: Mapping[str, Any], source: str) -> str:
    """Return docs/audit.md: what is tried, and what it found on KernelBench."""
    rows: Sequence[Row] = record["rows"]
    done = [row for row in rows if row["error"] is None]
    unranked = [row for row in done if row["rankable"] is False]
    later = [row for row in done if row["rankable"] and row.get("caught_later")]
    environment = record["environment"]
    summary = summarise(rows)
    return "\n".join(
        [
            "# The audit of problems",
            "",
            "Before a run, and by `hotloop audit PROBLEM`, the judge tries fakes on a problem's",
            "own checks: results that no honest kernel gives. A problem that lets one pass on all",
            "values is not ranked. `python -m benchmarks.audit --docs` writes this page from",
            f"`benchmarks/results/{source}` (commit {record['commit']}, {record['date']}, "
            f"{environment.get('gpu') or 'no GPU'}, torch {environment.get('torch')}).",
            "",
            f"Of {len(done)} KernelBench problems {summary['ranked']} are ranked and "
            f"{summary['not_ranked']} are not. On "
            f"{summary['with_a_fake_that_passes_nominal_values']} at least one fake passes on the "
            "values that the file itself draws.",
            "",
            "## Not ranked",
            "",
            "| problem | why |",
            "|---|---|",
            *(f"| {row['key']} | {_cell(_told(row))} |" for row in unranked),
            "",
            "## Ranked because other values catch what the file's own let pass",
            "",
            "| problem | fake and what catches it |",
            "|---|---|",
            *(f"| {row['key']} | {_cell(_caught(row))} |" for row in later),
            "",
        ]
    )


def _told(row: Row) -> str:
    if row["error"] is not None:
        return f"no result: {row['error']}"
    if row.get("refused"):
        return f"refused: {row['refused']}"
    if not row["rankable"]:
        return "not ranked: " + "; ".join(row["reasons"])
    return "; ".join(row.get("findings", ()))


def _caught(row: Row) -> str:
    pairs = [f"{name} ({where})" for name, where in row["caught_later"].items()]
    rest = len(pairs) - SHOWN
    return ", ".join(pairs[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _kind(name: str) -> str:
    """Return a fake's name without the input, output or dimension that it is about."""
    name = name.rpartition(": ")[2]
    for word in (" of ", " along ", " in block "):
        name = name.partition(word)[0]
    return name
