"""The figure's six problems written by a model: with and without a template's kernel to start.

    python -m benchmarks.attention_models step --folder DIR [--verdicts FILE] [--who NAME]
    python -m benchmarks.attention_models prompts --folder DIR --batches K      to be answered
    python -m benchmarks.attention_models collect --folder DIR                  replies taken in
    python -m benchmarks.attention_models bundle --folder DIR --out FILE        for `hotloop judge`
    python -m benchmarks.attention_models report --folder DIR                   benchmarks/results

Rounds repeat from `step`. There are 24 runs: six problems at D 128, S 4096, in Triton and in Gluon,
each from nothing and from the template's fastest kernel in that language (Triton: the portable
family, Gluon: the Hopper one), which the rows of the built-in generator hold (`--builtin`). A run
whose kernel is not there is named and skipped. A row is `generator: model` and stands in a results
file of its own: what a model wrote and what people wrote are never mixed in one figure.

The rows of the six problems at D 128, S 4096 are enough for `--builtin`, also in a `.partial.json`.
A first `step --verdicts benchmarks/recordings/model_pilot_verdicts.jsonl` spares the trip that only
loads: it knows the same six problems, as an H200 found them. `bundle` says how long its trip takes
(`attention_trip.py`). With a run's own final verdict that of its starting kernel is asked for
(`attention_starts.py`). `step --device cpu` tries the path at small sizes: nothing is timed there,
and `report` writes no file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks import pilot_answers
from benchmarks.attention_cases import FIGURE, Case
from benchmarks.attention_model_rows import model_row, summarise_models
from benchmarks.attention_starts import (
    as_asked,
    ask_for_start,
    start_kernels,
    start_path,
    write_starts,
)
from benchmarks.attention_trip import trip_text
from benchmarks.pilot_problems import PilotProblem
from benchmarks.pilot_runs import (
    BUDGET,
    Arm,
    PilotRun,
    bundle_all,
    open_runs,
    run_folder,
    select,
)
from benchmarks.pilot_tokens import open_counter
from benchmarks.results_file import RESULTS, Row, write_results
from hotloop import api
from hotloop.engine import StopReason
from hotloop.errors import HotloopError
from hotloop.llm.directory import WHO_FILE
from hotloop.plan import SearchPlan, plan_search
from hotloop.store.sqlite import SqliteStore
from hotloop.verify.bundle import Verdicts, read_bundle, read_verdicts
from hotloop.verify.outside import take_in

ROUNDS = 8
LANGUAGES = ("triton", "gluon")
STRATEGY = "benchmarks.pilot_strategies:RefineCalls"
BLANK = Arm(name="blank", strategy=STRATEGY, sees="memory")
STARTED = Arm(name="started", strategy=STRATEGY, sees="memory")
"""From the template's fastest kernel."""
ON_CPU: Mapping[str, Mapping[str, int | float | str]] = {
    "triton": {"dtype": "float32"},  # Triton's plain interpreter is wrong in half precision
    "gluon": {},  # compiled, and no more
}
"""Settings without a GPU, where sizes become small by themselves."""
BUILTIN = RESULTS / "attention_h200.json"
DEFAULT_OUT = RESULTS / "attention_models_h200.json"
DEFAULT_WHO = "LLM agent answering dir:"


def model_runs() -> list[PilotRun]:
    """Return all runs, named as `started/attention-full.gluon`."""
    problems = [
        PilotProblem(
            name=f"attention/{variant}",
            level=0,
            problem_id=None,
            title=variant,
            operator_class="attention",
        )
        for variant in FIGURE
    ]
    return [
        PilotRun(problem=problem, language=language, arm=arm)
        for language in LANGUAGES
        for arm in (BLANK, STARTED)
        for problem in problems
    ]


def lacks_start(run: PilotRun, folder: Path) -> bool:
    """Whether a run is to begin with a kernel that is not there."""
    return run.arm == STARTED and not start_path(folder, run.problem.title, run.language).exists()


def plan_of(run: PilotRun, folder: Path, device: str = "cuda") -> SearchPlan:
    """Return how one run searches, and in which folder; on `cpu` at small sizes."""
    variant = run.problem.title
    return plan_search(
        str(Case(variant, 128).path),
        model=f"dir:{folder / 'answers'}",
        no_wait=True,
        judge="bundle",
        device=device,
        budget=BUDGET,
        language=run.language,
        strategy=run.arm.strategy,
        sees=run.arm.sees,
        max_calls=ROUNDS,
        parallel=1,
        out=run_folder(folder, run),
        settings=ON_CPU[run.language] if device == "cpu" else run.problem.settings,
        start=start_path(folder, variant, run.language) if run.arm == STARTED else None,
    )


def step(
    run: PilotRun, folder: Path, verdicts: Verdicts | None = None, *, device: str = "cuda"
) -> str:
    """Bring one run as far as it comes without an answer from outside; return where it stands.

    Raises:
        HotloopError: it cannot begin or go on.
    """
    plan = plan_of(run, folder, device)
    if verdicts is not None:
        with SqliteStore(plan.folder) as store:
            store.begin(plan.spec, plan.problem)
            take_in(store, plan.problem, verdicts)
    result = api.run_plan(plan)
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
        awaits_start = ask_for_start(store, plan.problem)
    if result.reason is not StopReason.WAITING:
        return "verdict" if awaits_start else "done"
    return "reply" if any(name.endswith(".prompt.md") for name in result.waiting) else "verdict"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; return its exit code."""
    args = _parse(argv)
    try:
        return COMMANDS[args.command](args)
    except (ValueError, OSError, HotloopError) as exc:
        print(f"attention_models: {type(exc).__name__}: {exc}", file=sys.stderr)
        return 2


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--folder", type=Path, required=True, help="of all runs")
    shared.add_argument("--only", default="", help="runs with one of these in their names")
    commands = parser.add_subparsers(dest="command", required=True)
    stepping = commands.add_parser("step", parents=[shared])
    stepping.add_argument("--verdicts", type=Path, help="what `hotloop judge` wrote")
    stepping.add_argument("--builtin", type=Path, default=BUILTIN, help="rows with the templates")
    stepping.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    stepping.add_argument("--who", help=f"who answers; by default {DEFAULT_WHO!r}")
    handing = commands.add_parser("prompts", parents=[shared])
    handing.add_argument("--batches", type=int, required=True)
    commands.add_parser("collect", parents=[shared])
    bundling = commands.add_parser("bundle", parents=[shared])
    bundling.add_argument("--out", type=Path, required=True)
    reporting = commands.add_parser("report", parents=[shared])
    reporting.add_argument("--out", type=Path, default=DEFAULT_OUT)
    return parser.parse_args(argv)


def _step(args: argparse.Namespace) -> int:
    runs, folder = select(model_runs(), args.only), args.folder.resolve()
    if any(run.arm == STARTED for run in runs):
        write_starts(folder, start_kernels(args.builtin))
    who = folder / "answers" / WHO_FILE
    if args.who is not None or not who.exists():
        who.parent.mkdir(parents=True, exist_ok=True)
        who.write_text(f"{args.who or DEFAULT_WHO}\n", encoding="utf-8")
    verdicts = None if args.verdicts is None else read_verdicts(args.verdicts)
    failed = 0
    for run in runs:
        if lacks_start(run, folder):
            print(f"{run.name}: skipped: {args.builtin} has no {run.language} kernel of it")
            continue
        try:
            print(f"{run.name}: {step(run, folder, verdicts, device=args.device)}", flush=True)
        except HotloopError as exc:
            failed += 1
            print(f"{run.name}: {type(exc).__name__}: {exc}", flush=True)
    print(f"{len(pilot_answers.unanswered(folder / 'answers'))} prompts without a reply")
    return 1 if failed else 0


def _prompts(args: argparse.Namespace) -> int:
    for batch in pilot_answers.hand_out(args.folder, args.batches):
        print(f"{batch.folder}: {batch.problems.total()} prompts, {batch.size_bytes} bytes")
    return 0


def _collect(args: argparse.Namespace) -> int:
    found = pilot_answers.collect(args.folder)
    print(f"{len(found.new)} new replies, {len(found.missing)} prompts without a reply")
    for text in found.refused:
        print(text)
    return 1 if found.missing or found.refused else 0


def _bundle(args: argparse.Namespace) -> int:
    runs = select(model_runs(), args.only)
    count = bundle_all(args.folder.resolve(), runs, args.out, change=as_asked)
    told = f"{args.out}: {trip_text(read_bundle(args.out))}" if count else "nothing is pending"
    print(told)
    return 0 if count else 1


def _report(args: argparse.Namespace) -> int:
    tokens, rows, not_begun, devices = open_counter(), list[Row](), list[str](), set[str]()
    for run in select(model_runs(), args.only):
        readers = list(open_runs(args.folder.resolve(), [run]))
        if not readers:
            not_begun.append(run.name)
            continue
        with readers[0] as reader:
            devices.add(reader.spec().device)
            rows.append(model_row(run, reader, tokens))
    if not rows:
        raise ValueError(f"{args.folder}: no run has begun; step first")
    if "cpu" in devices:
        return _say_tried(rows)
    environment: Row = next((row["environment"] for row in rows if row["environment"]), {})
    summary = summarise_models(rows) | {"not_begun": not_begun}
    command = "python -m benchmarks.attention_models report"
    write_results(args.out, command=command, environment=environment, rows=rows, summary=summary)
    print(args.out)
    return 0


def _say_tried(rows: Sequence[Row]) -> int:
    for row in rows:
        print(f"{row['row']}: {row['calls']} calls, correct after {row['rounds_to_first_correct']}")
    print("without a GPU: nothing was timed, no results file is written")
    return 0


COMMANDS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "step": _step,
    "prompts": _prompts,
    "collect": _collect,
    "bundle": _bundle,
    "report": _report,
}

if __name__ == "__main__":
    sys.exit(main())
