"""Measure the verifier's mutation score on a machine without a GPU.

    make bench-mutation                                      20 mutants of every kernel
    python -m benchmarks.mutation --problems softmax,conv1d --rules masks --limit 50

Device cpu, tier fast, Triton's interpreter: the score is about correctness only. KernelBench
substrates come from the data set that HOTLOOP_KERNELBENCH names and are left out without it. Judged
mutants are remembered in a file below `runs/`: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.mutation.bench import DATA_VARIABLE, run_all
from benchmarks.mutation.plan import Choice, Progress
from benchmarks.mutation.report import result_rows, write
from benchmarks.mutation.rules import rules_of
from benchmarks.mutation.score import kind_of, summary, table, witness_text
from benchmarks.mutation.substrates import substrates_of
from benchmarks.results_file import RESULTS, ROOT

LIMIT = 20
"""Mutants of one kernel, as the make target asks for."""


def main(argv: Sequence[str] | None = None) -> int:
    """Judge what is missing, print the table, write the results file."""
    args = _parse(argv)
    try:
        rules, wanted = rules_of(args.rules), substrates_of(args.problems)
    except ValueError as exc:
        print(f"mutation: {exc}", file=sys.stderr)
        return 2
    if not os.environ.get(DATA_VARIABLE):
        left = [s.name for s in wanted if s.needs_data]
        wanted = [s for s in wanted if not s.needs_data]
        if left:
            print(f"left out without {DATA_VARIABLE}: {', '.join(left)}", file=sys.stderr)
    choice = Choice(rules, args.per_rule, args.limit, args.seed)
    progress = Progress(args.progress)
    notes = []
    if not args.report:
        notes = run_all(wanted, choice, progress, workers=args.workers, logs=args.logs)
    names, known = {s.name for s in wanted}, {r.name for r in rules}
    rows = [r for r in progress.rows.values() if r["substrate"] in names and r["rule"] in known]
    found = summary(rows)
    for row in rows:
        if kind_of(row) in args.show.split(","):
            print(witness_text(row), end="\n\n")
    print(table(found))
    if args.out is not None:
        write(args.out, rows=result_rows(rows), found=found, options=_options(args))
        print(args.out)
    return 1 if any(note["fault"] for note in notes) else 0


def _options(args: argparse.Namespace) -> str:
    given = {"limit": (args.limit, LIMIT), "per-rule": (args.per_rule, 1), "seed": (args.seed, 0)}
    given |= {"problems": (args.problems, ""), "rules": (args.rules, "")}
    return " ".join(f"--{k} {value}" for k, (value, usual) in given.items() if value != usual)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", default="", help="names or families, with commas; else all")
    parser.add_argument("--rules", default="", help="rules or classes, with commas; else all")
    parser.add_argument("--limit", type=int, default=LIMIT, help="mutants of one kernel at most")
    parser.add_argument("--per-rule", type=int, default=1, help="mutants of one rule and kernel")
    parser.add_argument("--seed", type=int, default=0, help="chooses among a rule's places")
    parser.add_argument("--workers", type=int, default=1, help="kernels judged at the same time")
    parser.add_argument("--report", action="store_true", help="judge nothing, tell what is known")
    parser.add_argument("--show", default="survivor", help="kinds of mutants to print")
    parser.add_argument("--progress", type=Path, default=ROOT / "runs" / "mutation" / "rows.jsonl")
    parser.add_argument("--logs", type=Path, default=ROOT / "runs" / "mutation" / "logs")
    parser.add_argument(
        "--out",
        type=Path,
        default=None,
        help=f"results file, {RESULTS.name}/verifier_quality_cpu.json",
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
