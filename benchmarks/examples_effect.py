"""What examples do to first drafts: the same problems with and without them, as a results file.

    make bench-examples ARGS="--with runs/with-examples --without runs/plain"

Both suites were made by `hotloop bench`, one with `--examples`. Compared is the first kernel that a
model wrote for each problem, at the fast tier, each against the baselines of its own load: later
kernels differ by what the verdicts told as well. Nothing is run here. Problems that only one suite
has a verdict of are left out and counted.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.results_file import RESULTS, Row, write_results
from hotloop.core.attempt import Attempt
from hotloop.core.problem import ProblemInfo
from hotloop.core.record import from_json
from hotloop.core.statistics import RESAMPLES, geometric_mean, quantile
from hotloop.errors import HotloopError
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.suite.folder import SuiteRecord, read_suite

DEFAULT = RESULTS / "kernelbench_examples_h200.json"
COMMAND = "make bench-examples"
NOTABLE = 1.05
"""By how much a time has to differ to count as faster or slower."""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the results file and print its summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--with", dest="shown", type=Path, required=True, help="a suite's folder")
    parser.add_argument("--without", dest="plain", type=Path, required=True, help="another")
    parser.add_argument("--model", required=True, help="who answered")
    parser.add_argument("--note", action="append", default=[], help="what a reader must know")
    parser.add_argument("--out", type=Path, default=DEFAULT)
    args = parser.parse_args(argv)
    try:
        rows, unpaired = compare(args.shown, args.plain)
    except (HotloopError, ValueError) as exc:
        print(f"examples_effect: {exc}", file=sys.stderr)
        return 2
    environment = _environment(rows)
    for row in rows:
        del row["environment"]
    summary = summarise(rows) | {
        "generator": "model", "model": args.model, "unpaired": unpaired, "notes": args.note,
    }  # fmt: skip
    write_results(args.out, command=COMMAND, environment=environment, rows=rows, summary=summary)
    print(f"{args.out}: {summary}")
    return 0


def compare(shown: Path, plain: Path) -> tuple[list[Row], int]:
    """Return a row for each problem that both suites have a first kernel of, and how many lack one.

    Raises:
        ForeignRun: a folder holds no suite.
        ValueError: the suites are of different models or languages, or have no problem in common.
    """
    with_examples, without = read_suite(shown), read_suite(plain)
    _require_comparable(with_examples, without)
    others = {member.name: member for member in without.problems}
    rows, unpaired = [], 0
    for member in with_examples.problems:
        other = others.get(member.name)
        one = first_kernel(shown / member.folder)
        two = None if other is None else first_kernel(plain / other.folder)
        if one is None or two is None:
            unpaired += 1
            continue
        rows.append(
            {
                "key": member.name, "problem": member.name, "generator": "model",
                "with": one, "without": two, "environment": one.pop("environment"), "error": None,
            }
        )  # fmt: skip
        two.pop("environment")
    if not rows:
        raise ValueError(f"{shown} and {plain} have no judged problem in common")
    return rows, unpaired


def _require_comparable(one: SuiteRecord, two: SuiteRecord) -> None:
    for name in ("generator", "device", "language"):
        if one.options.get(name) != two.options.get(name):
            raise ValueError(
                f"expected suites of the same {name}, got {one.options.get(name)!r} and "
                f"{two.options.get(name)!r}"
            )


def first_kernel(folder: Path) -> dict[str, Any] | None:
    """Return the verdict of the first kernel that a model wrote in a run; None where none has one.

    Raises:
        ForeignRun: a newer hotloop wrote the run.
    """
    if not (folder / JOURNAL_FILE).is_file():
        return None  # not begun
    with RunReader(folder) as reader:
        written = [a for a in reader.attempts() if a.asked is not None]
        if not written or written[0].verdict is None:
            return None
        setups = reader.notes("setup")
        info = from_json(ProblemInfo, setups[-1]["info"])
        return _told(written[0]) | {"environment": dict(info.environment)}


def _told(attempt: Attempt) -> dict[str, Any]:
    verdict = attempt.verdict
    assert verdict is not None, "its caller looked"
    performance = verdict.performance
    baseline = min(performance.baselines.values(), default=None) if performance else None
    return {
        "status": verdict.status.value,
        "latency_ms": performance.latency_ms if performance else None,
        "best_baseline_ms": baseline,
        "speedup": baseline / performance.latency_ms if performance and baseline else None,
    }


def summarise(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many first drafts were right in each arm, and how the speed-ups compare.

    The ratio of the geometric means is over the problems that both arms solved; its interval is a
    bootstrap over problems, 95 %.
    """
    pairs = [
        (row["with"]["speedup"], row["without"]["speedup"])
        for row in rows
        if row["with"]["speedup"] and row["without"]["speedup"]
    ]
    summary: dict[str, Any] = {
        "problems": len(rows),
        "passed_with": sum(row["with"]["status"] == "PASSED" for row in rows),
        "passed_without": sum(row["without"]["status"] == "PASSED" for row in rows),
        "both_passed": len(pairs),
    }
    if pairs:
        summary |= {
            "geomean_with": geometric_mean([a for a, _ in pairs]),
            "geomean_without": geometric_mean([b for _, b in pairs]),
            "ratio_ci": _interval([a / b for a, b in pairs]),
            "faster_with": sum(a > NOTABLE * b for a, b in pairs),
            "slower_with": sum(b > NOTABLE * a for a, b in pairs),
        }
    return summary


def _interval(ratios: Sequence[float]) -> list[float]:
    draw = random.Random(0)
    means = [geometric_mean(draw.choices(ratios, k=len(ratios))) for _ in range(RESAMPLES)]
    return [quantile(means, 0.025), quantile(means, 0.975)]


def _environment(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = ("gpu", "driver", "cuda", "torch", "triton", "python", "isolation")
    found = {}
    for name in names:
        values = sorted({str(row["environment"].get(name)) for row in rows})
        found[name] = values[0] if len(values) == 1 else ", ".join(values)
    return found


if __name__ == "__main__":
    sys.exit(main())
