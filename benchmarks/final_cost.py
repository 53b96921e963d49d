"""Time the final tier, full and short, stage by stage, on six problems.

    make bench-final
    python -m benchmarks.final_cost --problems kernelbench/1/1,examples/row_softmax.py

KernelBench problems come from the data set that HOTLOOP_KERNELBENCH names. Each problem gets a
judge of its own on the first GPU, one verdict at the fast tier (cold: it builds the kernel), then
two finals, the full one first (cold too: it makes the other shapes). Problems that the results file
holds of the same commit are kept: a benchmark that was cut goes on with the same command.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu_pool import gpu_slug, visible_gpus
from benchmarks.results_file import RESULTS, ROOT, Row, commit, rows_of, write_results
from benchmarks.verify_problem import DATA_VARIABLE
from benchmarks.verify_suite import candidate, entry_of
from hotloop import registry
from hotloop.core.candidate import Candidate
from hotloop.core.problem import ProblemInfo
from hotloop.core.record import to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import DeviceLost, HotloopError
from hotloop.kernel_file import read_candidate
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

LIMIT_S: Mapping[str, float] = {"full": 60.0, "short": 20.0}
"""What a final tier may take."""
STAGES = ("load", "correctness", "sanitizer", "performance")


@dataclass(frozen=True, slots=True)
class Subject:
    """One problem and where its kernel comes from."""

    problem: str
    kernel: str | None = None
    """A file from the project's root; None: that of the throughput suite."""

    def read(self, info: ProblemInfo) -> Candidate:
        """Return the kernel to judge."""
        if self.kernel is not None:
            return read_candidate(ROOT / self.kernel)
        entry = entry_of(self.problem)
        if entry.kernel is not None:
            return candidate(entry.source)
        generator = registry.load(registry.GENERATORS, "builtin")()
        strategy = registry.load(registry.STRATEGIES, "tune")(generator.space(info), 0)
        written = generator.generate(info, strategy.ask(1)[0])
        assert written.candidate is not None, "a template always gives code"
        found: Candidate = written.candidate
        return found


SUBJECTS = (
    Subject("kernelbench/1/1"),
    Subject("kernelbench/1/23"),
    Subject("kernelbench/1/36"),
    Subject("kernelbench/2/12"),
    Subject("examples/attention/causal.py"),
    Subject("examples/row_softmax.py", "examples/cuda/row_softmax.cu"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing; return 0 when every final passed within its limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--problems", default="", help="with commas; by default all six")
    parser.add_argument(
        "--out", type=Path, help="by default benchmarks/results/final_cost_GPU.json"
    )
    args = parser.parse_args(argv)
    known = {s.problem: s for s in SUBJECTS}
    names = [name for name in args.problems.split(",") if name] or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        print(
            f"final_cost: expected problems of {', '.join(known)}, got {unknown}", file=sys.stderr
        )
        return 2
    if any(n.startswith("kernelbench/") for n in names) and not os.environ.get(DATA_VARIABLE):
        print(f"final_cost: expected {DATA_VARIABLE} to name the data set", file=sys.stderr)
        return 2
    try:
        visible_gpus(1)
        path = args.out or RESULTS / f"final_cost_{gpu_slug()}.json"
    except DeviceLost as exc:
        print(f"final_cost: {exc}", file=sys.stderr)
        return 2
    rows = {row["problem"]: row for row in rows_of(path, commit())}
    for name in names:
        if name not in rows:
            rows[name] = measure(known[name])
            _write(path, list(rows.values()))
            print(f"{name}: {rows[name]['error'] or 'measured'}", file=sys.stderr, flush=True)
    wanted = [rows[name] for name in names]
    print(table(wanted))
    print(path)
    return 0 if all(is_within_limits(row) for row in wanted) else 1


def measure(subject: Subject) -> Row:
    """Judge one kernel: fast, final, short final. What was measured before an error stays."""
    row: Row = {"problem": subject.problem, "what": "final cost", "finals": [], "error": None}
    is_file = subject.problem.endswith(".py")
    verifier = LocalVerifier("cuda")
    try:
        where = ROOT / subject.problem if is_file else subject.problem
        data = os.environ.get(DATA_VARIABLE)
        info = verifier.load(load_problem_spec(where, device="cuda", data=data))
        row["environment"] = dict(info.environment)
        kernel = subject.read(info)
        row["language"] = kernel.language
        row["fast"] = _judged(verifier, kernel, Tier.FAST)
        for kind in ("full", "short"):
            verifier.short_final = kind == "short"
            row["finals"].append({"kind": kind, **_judged(verifier, kernel, Tier.FINAL)})
    except HotloopError as exc:
        row["error"] = f"{type(exc).__name__}: {exc}"
    finally:
        verifier.close()
    return row


def _judged(verifier: LocalVerifier, kernel: Candidate, tier: Tier) -> Row:
    start = time.monotonic()
    verdict = verifier.verify(kernel, tier)
    return {"wall_s": round(time.monotonic() - start, 3), **_described(verdict)}


def _described(verdict: Verdict) -> Row:
    return {
        "status": verdict.status.value,
        "message": verdict.message[:300],
        "mode": verdict.mode,
        "stage_s": to_json(verdict.stage_s),
        "checks": list(verdict.checks),
        "checks_skipped": dict(verdict.checks_skipped),
    }


def is_within_limits(row: Row) -> bool:
    """Whether both finals of a row passed in time."""
    return row["error"] is None and all(
        final["status"] == "PASSED" and final["wall_s"] < LIMIT_S[final["kind"]]
        for final in row["finals"]
    )


def summary(rows: Sequence[Row]) -> Row:
    """Return the longest final of each kind, and how many tools ran and did not."""
    finals = [final for row in rows for final in row["finals"]]
    found: Row = {"problems": len(rows), "within_limits": sum(map(is_within_limits, rows))}
    found["suite"] = len(SUBJECTS)
    for kind, limit_s in LIMIT_S.items():
        walls = [final["wall_s"] for final in finals if final["kind"] == kind]
        found[kind] = {"limit_s": limit_s, "longest_s": max(walls, default=None)}
    full = [final for final in finals if final["kind"] == "full"]
    found["tools_ran"] = sum(c.startswith("sanitizer:") for f in full for c in f["checks"])
    found["tools_skipped"] = sum(
        c.startswith("sanitizer:") for f in full for c in f["checks_skipped"]
    )
    return found


def table(rows: Sequence[Row]) -> str:
    """Return one line for each final: seconds by stage, and the tools that ran."""
    heads = ("problem", "final", "status", "wall s", *STAGES, "tools that ran")
    lines = [heads]
    for row in rows:
        if row["error"] is not None:
            lines.append((row["problem"], "-", row["error"][:60], *["-"] * (len(heads) - 3)))
        for final in row["finals"]:
            tools = [c.split(":")[1] for c in final["checks"] if c.startswith("sanitizer:")]
            spent = [f"{final['stage_s'].get(stage, 0.0):.1f}" for stage in STAGES]
            wall = f"{final['wall_s']:.1f}"
            cells = (row["problem"], final["kind"], final["status"], wall, *spent)
            lines.append((*cells, " ".join(tools) or "none"))
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _write(path: Path, rows: Sequence[Row]) -> None:
    environment: Row = next((r["environment"] for r in rows if r.get("environment")), {})
    write_results(
        path,
        command="make bench-final",
        environment=environment,
        rows=rows,
        summary=summary(rows),
    )


if __name__ == "__main__":
    sys.exit(main())
