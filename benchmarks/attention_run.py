"""One row of the attention benchmark: `hotloop optimize` as a user would run it, and what it found.

The command runs in a process of its own; its `--json` answer and the journal of its run folder
become the row. A run that fails is a row too, with `error`.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hotloop
from benchmarks.gpu_pool import Finished, run_command
from benchmarks.results_file import Row
from hotloop.errors import HotloopError

SIZES = {"B": 4, "H": 16, "Hkv": 16, "S": 4096, "Skv": 4096, "dtype": "bfloat16"}
"""What the files in `examples/attention` state; the journal's own account replaces it."""
NO_KERNEL_EXIT = 1
"""Exit codes up to this one come with a JSON answer."""
FROM_VERDICT = ("status", "stage", "tier", "mode", "deterministic", "isolation", "message",
                "precision_policy", "shape_scope", "resources", "candidate_id")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """One problem at one head size."""

    variant: str
    """Stem of the file in `examples/attention`."""
    D: int

    @property
    def key(self) -> str:
        """`causal-64`."""
        return f"{self.variant}-{self.D}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What all runs of one benchmark share."""

    device: str
    budget: str
    runs: Path
    """The run folders' parent; of this commit alone, so that no old verdict is taken over."""
    deadline: float
    """time.monotonic() when what still runs is stopped."""
    max_candidates: int | None = None


def measure(case: Case, gpu: str, options: RunOptions) -> Row | None:
    """Run one case on one GPU; None when the deadline stopped it."""
    folder = options.runs / case.key
    arguments = _arguments(case, folder, options)
    env = {"CUDA_VISIBLE_DEVICES": gpu} if options.device == "cuda" else {}
    done = run_command(
        [sys.executable, "-m", "hotloop", *arguments], env=env, deadline=options.deadline
    )
    if done.code is None:
        return None
    row: Row = {
        "problem": f"attention/{case.variant}",
        "row": case.key,
        "workload": {**SIZES, "D": case.D},
        "generator": "builtin",
        "command": shlex.join(["hotloop", *_without_folder(arguments)]),
        "wall_s": round(done.wall_s, 2),
        "gpu_index": gpu,
        "exit_code": done.code,
        "status": "ERROR",
        "performance": None,
        "error": None,
    }
    try:
        return row | _found(done, folder)
    except (HotloopError, LookupError) as exc:
        return row | {"error": f"the run's answer or journal: {type(exc).__name__}: {exc}"}


def _arguments(case: Case, folder: Path, options: RunOptions) -> list[str]:
    words = ["optimize", f"examples/attention/{case.variant}.py"]
    words += ["--device", options.device, "--budget", options.budget, "--set", f"D={case.D}"]
    if options.max_candidates is not None:
        words += ["--max-candidates", str(options.max_candidates)]
    return [*words, "--json", "--out", str(folder)]


def _without_folder(arguments: list[str]) -> list[str]:
    return [a for a in arguments[:-2] if a != "--json"]


def _found(done: Finished, folder: Path) -> Row:
    """Return what the run's answer and its journal say."""
    if done.code is None or not 0 <= done.code <= NO_KERNEL_EXIT:
        return {"error": f"exit code {done.code}: {done.last_words}"}
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return {"error": f"exit code {done.code} without a JSON answer: {done.last_words}"}
    found = {
        "setup_s": answer["setup_s"],
        "search_s": answer["spent_s"],
        "stop_reason": answer["stop_reason"],
        "candidates": answer["attempts"],
    }
    found |= _from_journal(folder, answer["best_attempt_id"])
    verdict = answer["verdict"]
    if verdict is None:
        return found | {"status": "NO_KERNEL", "message": "no candidate passed"}
    return found | _from_verdict(verdict)


def _from_journal(folder: Path, best_attempt_id: int | None) -> Row:
    with hotloop.load_run(folder) as reader:
        setups, attempts = reader.notes("setup"), reader.attempts()
    counts: dict[str, int] = {}
    for attempt in attempts:
        if attempt.verdict is not None:
            status = attempt.verdict.status.value
            counts[status] = counts.get(status, 0) + 1
    best = next((a for a in attempts if a.id == best_attempt_id), None)
    found: Row = {"verdicts": counts, "schedule": dict(best.point) if best else None}
    if setups:
        info = setups[-1]["info"]
        sizes = ("B", "H", "Hkv", "S", "Skv", "D", "dtype", "normalize")
        found["workload"] = {k: info["attention"][k] for k in sizes}
        found["setup_baselines_ms"] = info["baselines_ms"]
        found["missing_baselines"] = info["missing_baselines"]
        found["environment"] = info["environment"]
    return found


def _from_verdict(verdict: Mapping[str, Any]) -> Row:
    row = {name: verdict[name] for name in FROM_VERDICT}
    row["correctness"] = summarise_correctness(verdict["correctness"])
    if verdict["device"] == "cuda" and verdict["status"] == "PASSED" and verdict["tier"] != "final":
        # Only figures of the final tier are results.
        return row | {"status": "NO_FINAL", "fast_performance": verdict["performance"]}
    return row | {"performance": verdict["performance"]}


def summarise_correctness(correctness: Mapping[str, Any] | None) -> Row | None:
    """Return how many calls were checked, and the worst of each value profile.

    The worst is the largest error against float64 over that of the worst legitimate implementation.
    """
    if correctness is None:
        return None
    worst: dict[str, Row] = {}
    for case in correctness["cases"]:
        if case["rmse"] is None or not case["eager_rmse"]:
            ratio = None
        else:
            ratio = case["rmse"] / case["eager_rmse"]
        former = worst.get(case["profile"])
        if former is None or (ratio or 0.0) > (former["rmse_over_eager"] or 0.0):
            kept = ("rmse", "eager_rmse", "max_abs", "eager_max_abs", "passed")
            worst[case["profile"]] = {k: case[k] for k in kept} | {"rmse_over_eager": ratio}
    return {
        "cases": len(correctness["cases"]),
        "passed": all(case["passed"] for case in correctness["cases"]),
        "timed_calls_checked": correctness["timed_calls_checked"],
        "worst": worst,
    }
