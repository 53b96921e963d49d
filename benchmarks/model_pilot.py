"""Drive and evaluate the model pilot: a language model in the loop, answering by files.

    python -m benchmarks.model_pilot list                               what was drawn
    python -m benchmarks.model_pilot step --folder DIR [--verdicts FILE]
    python -m benchmarks.model_pilot prompts --folder DIR --batches K   to be answered
    python -m benchmarks.model_pilot collect --folder DIR               replies taken in
    python -m benchmarks.model_pilot bundle --folder DIR --out FILE     for `hotloop judge`
    python -m benchmarks.model_pilot report --folder DIR                benchmarks/results
    python -m benchmarks.model_pilot record --folder DIR --out FILE     for `replay:`
    python -m benchmarks.model_pilot seed --folder DIR --recording FILE goes on from a recording

The rounds repeat from `step`: it goes on with every run as far as replies and verdicts are there.
KernelBench problems come from the data set that HOTLOOP_KERNELBENCH names, or `--data`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks import pilot_answers
from benchmarks.pilot_problems import SEED, draw_pilot
from benchmarks.pilot_record import record
from benchmarks.pilot_rows import row_of, with_earlier_final
from benchmarks.pilot_runs import (
    ARMS,
    CANDIDATES,
    MAIN,
    PilotRun,
    StepOptions,
    bundle_all,
    open_runs,
    pilot_runs,
    select,
    step,
    table,
)
from benchmarks.pilot_seed import seed
from benchmarks.pilot_summary import summarise
from benchmarks.pilot_tokens import open_counter
from benchmarks.results_file import RESULTS, Row, write_results
from benchmarks.verify_problem import DATA_VARIABLE
from hotloop.core.language import LANGUAGES, TRITON
from hotloop.errors import HotloopError
from hotloop.llm.directory import WHO_FILE
from hotloop.verify.bundle import read_verdicts

DEFAULT_OUT = RESULTS / "model_pilot_h200.json"
DEFAULT_WHO = "LLM agent answering dir:"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; return its exit code."""
    args = _parse(argv)
    try:
        if args.data is None:
            raise ValueError(f"expected {DATA_VARIABLE} or --data to name the data set")
        return COMMANDS[args.command](args)
    except (ValueError, OSError, HotloopError) as exc:
        print(f"model_pilot: {type(exc).__name__}: {exc}", file=sys.stderr)
        return 2


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    in_folder = argparse.ArgumentParser(add_help=False, parents=[shared])
    in_folder.add_argument("--folder", type=Path, required=True, help="the pilot's folder")
    in_folder.add_argument("--only", default="", help="runs with one of these in their names")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", parents=[shared])
    stepping = commands.add_parser("step", parents=[in_folder])
    stepping.add_argument("--verdicts", type=Path)
    stepping.add_argument("--max-candidates", type=int, default=CANDIDATES)
    stepping.add_argument("--who", help=f"who answers; by default {DEFAULT_WHO!r}")
    handing = commands.add_parser("prompts", parents=[in_folder])
    handing.add_argument("--batches", type=int, required=True)
    commands.add_parser("collect", parents=[in_folder])
    to_file = argparse.ArgumentParser(add_help=False, parents=[in_folder])
    to_file.add_argument("--out", type=Path, required=True)
    commands.add_parser("bundle", parents=[to_file])
    recording = commands.add_parser("record", parents=[to_file])
    recording.add_argument("--arm", choices=[arm.name for arm in ARMS], default=MAIN)
    seeding = commands.add_parser("seed", parents=[in_folder])
    seeding.add_argument("--recording", type=Path, required=True)
    seeding.add_argument("--attempts", type=int, help="only calls up to this attempt")
    seeding.add_argument("--language", choices=list(LANGUAGES), default=TRITON.name)
    reporting = commands.add_parser("report", parents=[in_folder])
    reporting.add_argument("--out", type=Path, default=DEFAULT_OUT)
    reporting.add_argument(
        "--earlier", type=Path, help="a report whose final verdicts count where none is newer"
    )
    reporting.add_argument("--note", action="append", default=[], help="what a reader must know")
    return parser.parse_args(argv)


def _list(args: argparse.Namespace) -> int:
    draw = draw_pilot(args.data)
    print(f"seed {SEED}; {len(draw.problems)} problems, {len(pilot_runs(draw))} runs")
    for problem in draw.problems:
        marks = ["cuda"] * (problem in draw.cuda) + ["ablation"] * (problem in draw.ablation)
        print(
            f"{problem.name:<22} {problem.operator_class:<26} {problem.title[:44]:<44} "
            f"{' '.join(marks)}".rstrip()
        )
    return 0


def _step(args: argparse.Namespace) -> int:
    verdicts = None if args.verdicts is None else read_verdicts(args.verdicts)
    folder = args.folder.resolve()
    _name_who_answers(folder / "answers" / WHO_FILE, args.who)
    options = StepOptions(
        folder=folder, data=args.data, max_candidates=args.max_candidates, verdicts=verdicts
    )
    began = time.monotonic()
    stepped = [step(run, options) for run in _runs(args)]
    print(table(stepped))
    waiting = len(pilot_answers.unanswered(folder / "answers"))
    print(f"{waiting} prompts without a reply; {time.monotonic() - began:.1f} s")
    return 1 if any(s.state == "failed" for s in stepped) else 0


def _prompts(args: argparse.Namespace) -> int:
    for batch in pilot_answers.hand_out(args.folder, args.batches):
        print(f"{batch.folder}: {batch.problems.total()} prompts, {batch.size_bytes} bytes")
    return 0


def _collect(args: argparse.Namespace) -> int:
    found = pilot_answers.collect(args.folder)
    print(f"{len(found.new)} new replies, {len(found.missing)} prompts without a reply")
    for text in (*found.refused, *(f"missing: {name}" for name in found.missing)):
        print(text)
    return 1 if found.missing or found.refused else 0


def _bundle(args: argparse.Namespace) -> int:
    count = bundle_all(args.folder.resolve(), _runs(args), args.out)
    print(f"{args.out}: {count} to judge" if count else "nothing is pending")
    return 0 if count else 1


def _report(args: argparse.Namespace) -> int:
    tokens, folder = open_counter(), args.folder.resolve()
    runs = _runs(args)
    earlier = {} if args.earlier is None else _rows_of(args.earlier)
    rows, missing = [], []
    for run in runs:
        readers = list(open_runs(folder, [run]))
        if not readers:
            missing.append(run.name)
            continue
        with readers[0] as reader:
            rows.append(with_earlier_final(row_of(run, reader, tokens), earlier.get(run.name)))
    if not rows:
        raise ValueError(f"{folder}: no run has begun; step first")
    environment: Row = next((row["environment"] for row in rows if row["environment"]), {})
    summary = summarise(rows) | {"seed": SEED, "runs": len(runs), "not_begun": missing}
    summary["is_complete"] = summary["is_complete"] and not missing
    summary["notes"] = args.note
    write_results(
        args.out, command="make pilot-report", environment=environment, rows=rows, summary=summary
    )
    print(_told(summary))
    print(args.out)
    return 0


def _rows_of(report: Path) -> dict[str, Row]:
    return {row["row"]: row for row in json.loads(report.read_text(encoding="utf-8"))["rows"]}


def _told(summary: Mapping[str, Row]) -> str:
    lines = [f"complete: {summary['is_complete']}; {len(summary['unfinished'])} runs unfinished"]
    for name in ("triton", "triton_rankable", "cuda"):
        found = summary[name]
        fastest = found["speedup"]["fastest"]
        lines.append(
            f"{name}: {found['correct']} of {found['rows']} correct; over the fastest baseline "
            f"{fastest['geometric_mean'] or 0:.3f} (geometric mean), {fastest['wins']} wins"
        )
    for name, arm in summary["ablation"]["arms"].items():
        lines.append(
            f"arm {name}: correct after 1, 2, ... calls {arm['correct_after']}; "
            f"speed-up {arm['speedup']['geometric_mean']:.3f}"
        )
    for failure in summary["failures"]["most_common"]:
        rule = f" ({failure['rule']})" if failure["rule"] else ""
        lines.append(f"{failure['count']:>4} {failure['status']} {failure['kind']}{rule}")
    return "\n".join(lines)


def _seed(args: argparse.Namespace) -> int:
    options = StepOptions(folder=args.folder.resolve(), data=args.data)
    runs = [run for run in _runs(args) if run.language == args.language]
    calls = seed(runs, args.recording, options, attempts=args.attempts)
    print(f"{calls} calls of {args.recording} are in the runs; next: step")
    return 0 if calls else 1


def _record(args: argparse.Namespace) -> int:
    lines = record(args.folder.resolve(), _runs(args), args.out, args.arm)
    print("\n".join(lines) or "no call has been answered yet")
    return 0 if lines else 1


def _runs(args: argparse.Namespace) -> list[PilotRun]:
    return select(pilot_runs(draw_pilot(args.data)), args.only)


def _name_who_answers(path: Path, who: str | None) -> None:
    if who is None and path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{who or DEFAULT_WHO}\n", encoding="utf-8")


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": _list,
    "step": _step,
    "prompts": _prompts,
    "collect": _collect,
    "bundle": _bundle,
    "report": _report,
    "record": _record,
    "seed": _seed,
}

if __name__ == "__main__":
    sys.exit(main())
