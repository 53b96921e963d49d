"""Time the verifier on one problem of the suite, in this process, on the GPU that it sees.

    python -m benchmarks.verify_problem kernelbench/1/19 [--device cpu] [--log FILE]

Prints one JSON object. A fresh judge gets one candidate (cold: its start, the problem's set-up and
the verdict), then new sources one after the other, then spoiled ones. Nothing is built ahead, so
the wall clock of a verdict includes its compilation.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.faults import FAULTS
from benchmarks.results_file import ROOT, Row
from benchmarks.verify_suite import Entry, candidate, entry_of
from hotloop import registry
from hotloop.core.problem import ProblemInfo
from hotloop.core.record import to_json
from hotloop.core.verdict import Tier
from hotloop.errors import HotloopError
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

NEW_SOURCES = 3
MORE_SCHEDULES = 3
"""Some schedules do not fit the problem: so many more are tried until `NEW_SOURCES` passed."""
DATA_VARIABLE = "HOTLOOP_KERNELBENCH"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure one problem and print its row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--log", type=Path, default=None, help="the judge's stderr")
    args = parser.parse_args(argv)
    entry = entry_of(args.problem)
    row: Row = {
        "problem": entry.problem,
        "what": "verdicts",
        "tier": Tier.FAST.value,
        "library_anchor": entry.library_anchor,
        "generator": "builtin" if entry.kernel is None else f"kernels/{entry.kernel}.py",
        "verdicts": [],
        "error": None,
    }
    try:
        measure(entry, row, device=args.device, log=args.log)
    except HotloopError as exc:
        row["error"] = f"{type(exc).__name__}: {exc}"
    print(json.dumps(row))
    return 0


def measure(entry: Entry, row: Row, *, device: str, log: Path | None) -> None:
    """Put into the row what each verdict took; what was measured before an error stays.

    Raises:
        HotloopError: the problem or the machine is at fault.
    """
    problem = load_problem_spec(
        ROOT / entry.problem if entry.kernel is None else entry.problem,
        device=device,
        data=os.environ.get(DATA_VARIABLE),
        settings=entry.shrink if device == "cpu" else {},
    )
    row["problem"] = problem.name
    verifier = LocalVerifier(device, log_path=log)
    start = time.monotonic()
    try:
        info = verifier.load(problem)
        row["load_s"] = time.monotonic() - start
        row |= {"setup_s": info.setup_s, "rankable": info.rankable, "notes": list(info.notes)}
        row["environment"] = dict(info.environment)
        row["io_bytes"] = info.io_bytes
        row["workload"] = {"inputs": to_json(info.inputs)}
        sources = _sources(entry, info)
        cold = next(sources)
        row["verdicts"].append(_judge(verifier, f"{cold}\n# the first\n", "cold"))
        row["cold_first_s"] = time.monotonic() - start
        passed = 0
        for source in (cold, *sources):
            verdict = _judge(verifier, source, "new")
            row["verdicts"].append(verdict)
            passed += verdict["status"] == "PASSED"
            if passed == NEW_SOURCES:
                break
        for name, spoil in FAULTS.items():
            row["verdicts"].append(_judge(verifier, spoil(cold), name))
    finally:
        verifier.close()


def _sources(entry: Entry, info: ProblemInfo) -> Iterator[str]:
    if entry.kernel is not None:
        yield from entry.sources()
        return
    generator = registry.load(registry.GENERATORS, "builtin")()
    strategy = registry.load(registry.STRATEGIES, "tune")(generator.space(info), 0)
    for proposal in strategy.ask(NEW_SOURCES + MORE_SCHEDULES):
        written = generator.generate(info, proposal)
        assert written.candidate is not None, "a template always gives code"
        yield written.candidate.text()


def _judge(verifier: LocalVerifier, source: str, what: str) -> Row:
    start = time.monotonic()
    verdict = verifier.verify(candidate(source), Tier.FAST)
    wall_s = time.monotonic() - start
    performance = verdict.performance
    return {
        "what": what,
        "status": verdict.status.value,
        "stage": verdict.stage.value,
        "message": verdict.message[:300],
        "candidate_id": verdict.candidate_id,
        "wall_s": wall_s,
        "gpu_s": verdict.stage_s.get("gpu", 0.0),
        "stage_s": to_json(verdict.stage_s),
        "latency_ms": performance.latency_ms if performance else None,
        "timer": performance.timer if performance else None,
    }


if __name__ == "__main__":
    sys.exit(main())
