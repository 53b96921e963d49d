"""The numbers of docs/verifier.md as Markdown, from the merged results. Nothing here measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.results_file import Row
from benchmarks.verifier_quality_targets import SECONDS, SHARE, worst_group

FINALS = 6
"""Problems of the final tier's benchmark, for files that were written before they said so."""
BEGIN = "<!-- verifier numbers: written by benchmarks/verifier_quality.py -->"
END = "<!-- end of verifier numbers -->"
MET = {True: "yes", False: "**no**", None: "not measured"}
WHERE = {"cpu": "in Triton's interpreter", "cuda": "compiled for the GPU"}
SHOWN = 8
"""Names that a sentence lists before it counts the rest."""


def section(rows: Sequence[Row], summary: Row) -> str:
    """Return the Markdown between the markers.

    Args:
        rows: of the merged file, one a results file or a kind of which there is none.
        summary: of the merged file.
    """
    there = [row for row in rows if row["file"] is not None]
    lines = [_verdict(summary), ""]
    if summary["targets"]:
        lines += ["| what | target | measured | met | file |", "|---|---|---:|---|---|"]
        lines += [_target(target) for target in summary["targets"]]
        lines.append("")
    lines += [_source(row) for row in there]
    if summary["missing"]:
        lines += ["", _missing(summary["missing"])]
    return "\n".join(lines).rstrip()


def _verdict(summary: Row) -> str:
    missed, open_ = summary["missed"], summary["not_measured"]
    text = (
        f"{summary['met']} targets met, {len(missed)} missed, {len(open_)} without a figure; "
        f"{len(summary['missing'])} results files are missing."
    )
    if missed:
        text += f" Missed: {_names(missed)}."
    if open_:
        text += f" Without a figure: {_names(open_)}."
    return text


def _missing(missing: Mapping[str, str]) -> str:
    parts = [f"`{name}` (`{command}`)" for name, command in missing.items()]
    return f"No results file yet, so nothing is claimed: {'; '.join(parts)}."


def _target(target: Row) -> str:
    unit = target["unit"]
    limit = f"{target['rule']} {shown(target['limit'], unit)}"
    cells = (target["what"], limit, shown(target["value"], unit), MET[target["met"]])
    return "| " + " | ".join(cells) + f" | `{target['file']}` |"


def shown(value: float | None, unit: str) -> str:
    """Return a figure for people; a share is cut, never rounded up to a limit that it misses."""
    if value is None:
        return "-"
    if unit == SHARE:
        return f"{int(value * 10000 + 1e-6) / 100:g} %"
    return f"{value:.2f} s" if unit == SECONDS else f"{value:g}"


def _source(row: Row) -> str:
    """Return one file as a point of a list: what it says, and where it comes from."""
    where = row["environment"]
    parts = [where.get("gpu") or "no GPU"]
    parts += [f"{name} {where[name]}" for name in ("driver", "torch", "triton") if where.get(name)]
    told = " ".join(_told(row))
    return (
        f"- `{row['file']}` ({', '.join(parts)}; `{row['command']}`, commit {row['commit']}, "
        f"{row['date']}): {told}"
    )


def _told(row: Row) -> Iterator[str]:
    tell = TELLERS.get(row["kind"])
    if tell is not None:
        yield from tell(row["figures"])


def _attacks(found: Row) -> Iterator[str]:
    stages = ", ".join(f"{n} at `{stage}`" for stage, n in found["attacks_by_stage"].items())
    yield (
        f"{found['attacks_refused']} of {found['attacks']} attacks refused ({stages}); "
        f"{found['honest_passed']} of {found['honest']} honest look-alikes passed."
    )
    for name, text in (
        ("attacks_passed", "Passed, and should not have"),
        ("attacks_refused_with_another_status", "Refused with a status that is not listed"),
        ("refused_at_the_final_tier_only", "Passed the fast tier, refused by the final one"),
        ("without_a_result", "Not judged, the machine failed"),
        ("needs_a_gpu", "Left out, they need a GPU"),
    ):
        if found[name]:
            yield f"{text}: {_names(found[name])}."
    if passed := [name for name, status in found["settled"].items() if status == "PASSED"]:
        yield f"Passed by the rules, against their authors' expectation: {_names(passed)}."


def _honest(found: Row) -> Iterator[str]:
    bound = found["refusal_rate_upper_95"]
    text = (
        f"{found['refused']} of {found['runs']} runs of {found['kernels']} honest kernels refused"
    )
    if bound is not None:
        text += f"; the rate is below {bound:.2%} (95 %, exact binomial bound)"
    rest = f", {found['inconclusive']} inconclusive, {found['errors']} without a result."
    yield text + rest
    tiers = ", ".join(
        f"{runs} {tier}" for tier, runs in sorted(found.get("runs_by_tier", {}).items())
    )
    sharing = found.get("judges_per_gpu", 1)
    if tiers:
        yield f"By tier: {tiers}" + (
            f"; up to {sharing} judges shared a GPU." if sharing > 1 else "."
        )
    if found["refused_kernels"]:
        yield f"Refused: {_names(found['refused_kernels'])}."


def _mutation(found: Row) -> Iterator[str]:
    total = found["total"]
    yield (
        f"{total.get('killed', 0)} of {total['counted']} counted mutants refused at the fast tier "
        f"({found['mutants']} mutants of {found['kernels']} kernels by {found['rules']} rules, "
        f"{WHERE[found['device']]}, nothing timed; one counts when an oracle that shares no code "
        "with the gate shows it wrong)."
    )
    if worst := worst_group(found):
        counted = found["by_group"][worst[1]]["counted"]
        yield f"Worst class: {worst[1]}, {shown(worst[0], SHARE)} of {counted}."
    if survivors := found.get("survivors"):
        yield f"Passed, and explained in decision 006: {_names(survivors)}."
    if outside := total.get("out_of_bounds_passed"):
        yield f"{outside} more read or wrote out of bounds without a wrong value, and passed."
    if final := found.get("final"):
        counted = final["total"]
        yield (
            f"Final tier: {counted.get('killed', 0)} of {counted['counted']} refused, a sample "
            "chosen before."
        )
    if len(commits := found.get("commits", {})) > 1:
        yield (
            "Judged by several commits: "
            + ", ".join(f"{n} by {c}" for c, n in commits.items())
            + "."
        )


def _audit(found: Row) -> Iterator[str]:
    yield (
        f"{found['ranked']} of {found['problems']} KernelBench problems are ranked, "
        f"{found['not_ranked']} are not ({found['errors']} without a result); on "
        f"{found['with_a_fake_that_passes_nominal_values']} a fake passes on the file's own values."
    )


def _timing(found: Row) -> Iterator[str]:
    worst, empty_us = found["control_worst"], found["empty_ms"] * 1e3
    ratio = "" if worst is None else f" by at most {worst:.2%}"
    yield (
        f"{found['kernels']} kernels: one against itself differs{ratio}; outside of its limit: "
        f"{_names(found['control_outside']) or 'none'}; another clock saw longer times than its "
        f"limit allows on: {_names(found['understated']) or 'none'}; an empty kernel takes "
        f"{empty_us:.2f} us."
    )


def _final_cost(found: Row) -> Iterator[str]:
    yield (
        f"{found['within_limits']} of {found['problems']} problems had both final tiers in time; "
        f"sanitizer tools ran {found['tools_ran']} times and were left out "
        f"{found['tools_skipped']} times."
    )
    if (left := found.get("suite", FINALS) - found["problems"]) > 0:
        yield f"{left} of the benchmark's {found.get('suite', FINALS)} problems were not measured."


def _throughput(found: Row) -> Iterator[str]:
    wall, early = found["wall_s"], found["early_failure_s"]
    yield (
        f"{found['new_passed']} verdicts on {found['problems']} problems: {wall['p50']:.2f} s of "
        f"wall clock (median; 90 % under {wall['p90']:.2f} s); a compile error takes "
        f"{early['compile']['p50']:.2f} s, a static refusal {early['static']['p50']:.3f} s."
    )


def _cage(found: Row) -> Iterator[str]:
    for tier, counts in found["attacks"].items():
        total = sum(counts.values())
        yield f"{counts['refused']} of {total} attacks on the cage refused at {tier}."
    if found["open"]:
        yield f"Open: {_names(found['open'])}."


TELLERS: Mapping[str, Callable[[Row], Iterator[str]]] = {
    "attacks_cpu": _attacks,
    "attacks_gpu": _attacks,
    "honest": _honest,
    "mutation_cpu": _mutation,
    "mutation_gpu": _mutation,
    "audit": _audit,
    "timing": _timing,
    "final_cost": _final_cost,
    "throughput": _throughput,
    "cage": _cage,
}


def _names(names: Sequence[str]) -> str:
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
