"""Make the published rows of KernelBench again from what was recorded: prompts, replies, verdicts.

    make replay-kernelbench ARGS='--data PATH'           all problems; needs no GPU, judges nothing
    python -m benchmarks.kernelbench_replay --problems 1/1,2/14 --data PATH
    python -m benchmarks.kernelbench_replay --open runs/again --data PATH     a suite to go on with

The replies are played into a new suite, and the verdicts are taken from their file, so the search
itself picks the best kernel of each problem once more. Each row has to come out as the results file
has it: kernel, status, calls, times, ratios with their intervals. Left out are the number of
attempts (points of sweeps that were never judged are asked for or not), the baselines at load (a
verdict file holds those of one load) and what a row waits for.

`--open FOLDER` makes a suite to go on with, and compares nothing: replies lie in FOLDER/answers as
if somebody had just given them (`dir:`), and final verdicts are left out. So the judge of today
gives these anew, and what it refuses gets further prompts.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.kernelbench import DEFAULT, row_of
from benchmarks.recorded_answers import answer
from benchmarks.results_file import ROOT
from hotloop.cli.main import main as hotloop
from hotloop.core.verdict import Tier
from hotloop.errors import HotloopError
from hotloop.llm.recording import read_recording
from hotloop.suite.figures_rows import read_rows
from hotloop.suite.folder import read_suite
from hotloop.suite.recorded import recorded_run
from hotloop.verify.bundle import Verdicts, read_verdicts, write_verdicts

RECORDING = ROOT / "benchmarks" / "recordings" / "kernelbench_model.jsonl.gz"
VERDICTS = ROOT / "benchmarks" / "recordings" / "kernelbench_model_verdicts.jsonl.gz"
NOT_COMPARED = frozenset({"attempts", "baselines_ms_at_load", "why"})
SHOWN = 20

Row = Mapping[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Replay and compare; return 0 when every row is the published one."""
    args = _parse(argv)
    try:
        published = json.loads(args.results.read_text(encoding="utf-8"))
        if args.open is not None:
            print(opened(published, args.open, args))
            return 0
        with tempfile.TemporaryDirectory(prefix="hotloop-replay-") as folder:
            found = replayed(published, Path(folder) / "suite", args)
    except (HotloopError, OSError, ValueError) as exc:
        print(f"kernelbench_replay: {exc}", file=sys.stderr)
        return 2
    expected = {row["problem"]: row for row in published["rows"] if row["generator"] == "model"}
    differing = [text for row in found for text in differences(row, expected.get(row["problem"]))]
    for text in differing[:SHOWN]:
        print(text)
    same = len(found) - len({text.split(":")[0] for text in differing})
    print(f"{same} of {len(found)} rows came out as {args.results.name} has them")
    return 1 if differing or not found else 0


def replayed(published: Row, folder: Path, args: argparse.Namespace) -> list[Row]:
    """Return the rows of a suite that the recording and the verdicts made.

    Raises:
        ValueError: the results have no suite of a model, or the replay fails.
        HotloopError: the suite cannot be read.
    """
    words = [*bench_words(published, folder, args), "--model", f"replay:{RECORDING}",
             "--verdicts", str(VERDICTS)]  # fmt: skip
    for closing in ([], ["--close"]):
        _play([*words, *closing])
    record = read_suite(folder)
    runs = (recorded_run(folder, record, member) for member in record.problems)
    return [json.loads(json.dumps(row_of(row))) for row in read_rows(runs)]


def opened(published: Row, folder: Path, args: argparse.Namespace) -> str:
    """Make a suite that waits for final verdicts and further answers; return how to go on.

    Raises:
        ValueError: the results have no suite of a model, or a command fails.
        HotloopError: the recording or the verdicts cannot be read.
    """
    recording, answers = read_recording(RECORDING), folder / "answers"
    verdicts = folder / "fast.verdicts"
    words = [*bench_words(published, folder / "suite", args), "--model", f"dir:{answers}"]
    folder.mkdir(parents=True, exist_ok=True)
    write_verdicts(verdicts, without_finals(read_verdicts(VERDICTS)))
    _play([*words, "--verdicts", str(verdicts)])
    while answer(answers, recording):
        _play([*words, "--verdicts", str(verdicts)])
    return "\n".join(
        [
            f"{folder / 'suite'}: without final verdicts; go on with",
            f"  hotloop {shlex.join(w for w in words if w != '--json')}",
            "and --close to have the best kernels judged, or --max-calls for more prompts",
        ]
    )


def without_finals(verdicts: Verdicts) -> Verdicts:
    """Return verdicts without those of the final tier, and what came of asking for these."""
    return replace(
        verdicts,
        verdicts=tuple(v for v in verdicts.verdicts if v.tier is not Tier.FINAL),
        errors=tuple(e for e in verdicts.errors if e.tier is not Tier.FINAL),
    )


def bench_words(published: Row, folder: Path, args: argparse.Namespace) -> list[str]:
    """Return the command that makes the suite again, but for who answers and what is known.

    Raises:
        ValueError: the results have no suite of a model.
    """
    suites = [s for s in published["summary"]["suites"] if s["options"]["generator"] == "model"]
    if len(suites) != 1:
        raise ValueError(f"expected results with one suite of a model, got {len(suites)}")
    options, limits = suites[0]["options"], suites[0]["limits"]
    words = ["bench", "kernelbench", "--judge", "bundle", "--no-wait", "--json",
             "--out", str(folder), "--budget", f"{limits['wall_s']:.0f}s"]  # fmt: skip
    for name in ("max_calls", "parallel"):
        words += [f"--{name.replace('_', '-')}", str(limits[name])]
    for name in ("device", "language", "seed", "sees", "strategy"):
        words += [f"--{name}", str(options[name])]
    words += ["--problems", args.problems] if args.problems else []
    return [*words, "--data", str(args.data)] if args.data else words


def _play(words: Sequence[str]) -> None:
    """Run a command of hotloop, which goes as far as the recording and the verdicts reach.

    Raises:
        ValueError: it fails.
    """
    said, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        code = hotloop(list(words))
    if not said.getvalue():
        raise ValueError(f"hotloop ended with {code}: {told.getvalue().strip()[-400:]}")
    rows = json.loads(said.getvalue())["problems"]
    print(f"{sum(row['calls'] for row in rows)} calls played, {len(rows)} problems", flush=True)


def differences(found: Row, expected: Row | None) -> list[str]:
    """Return a line for each field of a row that is not as the results file has it."""
    name = found["problem"]
    if expected is None:
        return [f"{name}: not in the results file"]
    return [
        f"{name}: {field}: expected {_cut(expected.get(field))}, got {_cut(found.get(field))}"
        for field in sorted((found.keys() | expected.keys()) - NOT_COMPARED)
        if found.get(field) != expected.get(field)
    ]


def _cut(value: object, most: int = 60) -> str:
    text = json.dumps(value)
    return text if len(text) <= most else text[:most] + "..."


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", default="", help="such as 1/19,2/40; all without")
    parser.add_argument("--data", type=Path, help="KernelBench; else HOTLOOP_KERNELBENCH names it")
    parser.add_argument("--results", type=Path, default=DEFAULT)
    parser.add_argument("--open", type=Path, metavar="FOLDER", help="a suite to go on with")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
