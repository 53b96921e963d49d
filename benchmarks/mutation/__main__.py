"""Measure the verifier's mutation score.

    make bench-mutation                                      no GPU: 20 mutants of every kernel
    make bench-mutation-gpu                                  all GPUs: Triton and CUDA sources
    python -m benchmarks.mutation --problems softmax,conv1d --rules masks --limit 50
    python -m benchmarks.mutation --dry                      the whole chain in a minute, no GPU

The score is about correctness only. Device cpu is Triton's interpreter; CUDA sources need a GPU.
KernelBench substrates come from the data set that HOTLOOP_KERNELBENCH names and are left out
without it. Judged mutants are remembered in a file below `runs/`: the same command goes on where
it was stopped, and `--seconds` stops it tidily with what is done.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu_pool import gpu_slug, visible_gpus
from benchmarks.mutation.bench import run_all
from benchmarks.mutation.plan import Choice, Progress, Row
from benchmarks.mutation.report import result_rows, write
from benchmarks.mutation.rules import cuda_rules_of, rules_of
from benchmarks.mutation.score import DEFAULTS, kind_of, summary, table, witness_text
from benchmarks.mutation.substrates import Substrate, substrates_of
from benchmarks.mutation.worker import DATA_VARIABLE, Setup
from benchmarks.results_file import RESULTS, ROOT
from hotloop.errors import DeviceLost

LIMIT = 20
"""Mutants of one kernel, as the make targets ask for; a CUDA source gets twice as many."""
CORES_A_WORKER = 1.5
"""A worker has up to three processes that compile or wait for a GPU by turns."""
FINAL_SHARE = 0.35
"""Of the counted mutants on a GPU: over 300 of a thousand."""
FOLDER = ROOT / "runs" / "mutation"
DRY = "hard_tanh,max_reduction"


def main(argv: Sequence[str] | None = None) -> int:
    """Judge what is missing, print the table, write the results file."""
    args = _parse(argv)
    if args.dry:
        _make_dry(args)
    try:
        choice = Choice(
            rules_of(args.rules), args.per_rule, args.limit, args.seed,
            cuda_rules_of(args.rules), args.final_share,
        )  # fmt: skip
        wanted = _substrates(args.problems, args.device)
        gpus = _gpus(args)
    except (ValueError, DeviceLost) as exc:
        print(f"mutation: {exc}", file=sys.stderr)
        return 2
    progress = Progress(args.progress or FOLDER / _file_of(args.device))
    setup = Setup(
        args.device, gpus, args.logs, args.part, time.monotonic() + args.seconds
    )  # fmt: skip
    notes = [] if args.report else run_all(wanted, choice, progress, setup)
    names, known = {s.name for s in wanted}, {r.name for r in choice.rules}
    known |= set(choice.cuda_rules)
    rows = [r for r in progress.rows.values() if _belongs(r, args.device, names, known)]
    found = summary(rows, args.device)
    for row in rows:
        if kind_of(row) in args.show.split(","):
            print(witness_text(row), end="\n\n")
    print(table(found))
    machine = progress.machine(setup.environment)
    path = args.out or (_results() if args.device == "cuda" and not args.report else None)
    if path is not None:
        write(path, rows=result_rows(rows), found=found, options=_options(args), machine=machine)
        print(path)
    faults = [f"{n['substrate']}: {n['fault']}" for n in notes if n["fault"]]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


def _substrates(names: str, device: str) -> list[Substrate]:
    wanted = [s for s in substrates_of(names) if device in s.devices]
    if os.environ.get(DATA_VARIABLE):
        return wanted
    left = [s.name for s in wanted if s.needs_data]
    if left:
        print(f"left out without {DATA_VARIABLE}: {', '.join(left)}", file=sys.stderr)
    return [s for s in wanted if not s.needs_data]


def _belongs(row: Row, device: str, names: set[str], rules: set[str]) -> bool:
    same_device = row.get("device", DEFAULTS["device"]) == device
    return same_device and row["substrate"] in names and row["rule"] in rules


def _gpus(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the GPU of each worker; workers of one GPU are not next to each other."""
    if args.device == "cpu" or args.report:
        return ("",) * (args.workers or 1)
    gpus = visible_gpus(args.gpus)
    cores = os.cpu_count() or 2
    each = args.workers or max(1, int(cores / len(gpus) / CORES_A_WORKER))
    return tuple(gpus) * each


def _file_of(device: str) -> str:
    return "rows.jsonl" if device == "cpu" else f"rows_{device}.jsonl"


def _results() -> Path:
    return RESULTS / f"verifier_quality_{gpu_slug()}.json"


def _make_dry(args: argparse.Namespace) -> None:
    """Change the options to those of a short try of everything that works without a GPU."""
    folder = FOLDER / "dry"
    folder.mkdir(parents=True, exist_ok=True)
    args.device, args.problems, args.limit, args.workers = "cpu", args.problems or DRY, 4, 2
    args.part, args.final_share, args.logs = 2, 0.5, folder / "logs"
    args.progress, args.out = folder / "rows.jsonl", args.out or folder / "results.json"
    args.progress.unlink(missing_ok=True)


def _options(args: argparse.Namespace) -> str:
    given: dict[str, tuple[object, object]] = {}
    given |= {"limit": (args.limit, LIMIT), "per-rule": (args.per_rule, 1), "seed": (args.seed, 0)}
    given |= {"problems": (args.problems, ""), "rules": (args.rules, "")}
    usual_share = 0.0 if args.device == "cpu" else FINAL_SHARE
    given |= {"final-share": (args.final_share, usual_share)}
    return " ".join(f"--{k} {value}" for k, (value, usual) in given.items() if value != usual)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--problems", default="", help="names, families or languages, with commas; else all")
    add("--rules", default="", help="rules or classes, with commas; else all")
    add("--limit", type=int, default=LIMIT, help="mutants of one kernel at most")
    add("--per-rule", type=int, default=1, help="mutants of one rule and kernel")
    add("--seed", type=int, default=0, help="chooses among a rule's places, and the final sample")
    add("--final-share", type=float, default=None, help="counted mutants that go to the final tier")
    add("--workers", type=int, default=None, help="kernels judged at the same time, of one GPU")
    add("--gpus", type=int, default=None, help="how many; by default all")
    add("--part", type=int, default=20, help="mutants that a worker takes at a time")
    add("--seconds", type=float, default=1e6, help="wall clock after which no mutant is begun")
    add("--report", action="store_true", help="judge nothing; write where --out says")
    add("--dry", action="store_true", help="two kernels, a few mutants, no GPU")
    add("--show", default="survivor", help="kinds of mutants to print")
    add("--progress", type=Path, default=None, help="the file that remembers what is done")
    add("--logs", type=Path, default=FOLDER / "logs")
    add("--out", type=Path, default=None, help="results file; cuda: verifier_quality_GPU.json")
    args = parser.parse_args(argv)
    if args.final_share is None:
        args.final_share = FINAL_SHARE if args.device == "cuda" else 0.0
    return args


if __name__ == "__main__":
    sys.exit(main())
