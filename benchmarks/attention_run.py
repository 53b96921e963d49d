"""One row of the attention benchmark: `hotloop optimize` as a user would run it, and what it found.

The command runs in a process of its own; its `--json` answer and the journal of its run folder
become the row. A run that fails is a row too, with `error`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hotloop
from benchmarks.attention_cases import BASES, FIGURE, MAIN_S, Case, H
from benchmarks.attention_plan import budget_of
from benchmarks.gpu_pool import Finished, run_command
from benchmarks.results_file import Row
from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate
from hotloop.engine.result import ranked
from hotloop.errors import HotloopError
from hotloop.store.lock import LOCK_FILE, FolderLock
from hotloop.store.reader import RunReader

NO_KERNEL_EXIT = 1
"""Exit codes up to this one come with a JSON answer."""
FROM_VERDICT = ("status", "stage", "tier", "mode", "deterministic", "isolation", "message",
                "precision_policy", "shape_scope", "resources", "candidate_id")  # fmt: skip
SIZES = ("B", "H", "Hkv", "S", "Skv", "D", "dtype", "normalize")
FAMILIES = {"triton": "portable", "gluon": "hopper"}
"""The built-in generator's families by the language that they are written in, where the schedule
does not name one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What all runs of one benchmark share."""

    device: str
    runs: Path
    """The run folders' parent; of this commit alone, so that no old verdict is taken over."""
    deadline: float
    """time.monotonic() when what still runs is stopped."""
    budget: str | None = None
    """Of each row's search; None: the row's own."""
    max_candidates: int | None = None
    kernel: str | None = None
    """Source of the one kernel to verify and time, that of the case's `base`; None: search."""


def measure(case: Case, gpu: str, options: RunOptions) -> Row | None:
    """Run one case on one GPU; None when the deadline stopped it.

    Raises:
        RunHeld: an earlier run of the case is still alive in its folder.
    """
    folder = options.runs / case.key
    clear(folder)  # a row that was cut starts again
    arguments = _arguments(case, folder, options)
    told = _without_folder(arguments)
    if options.kernel is not None and case.base is not None:
        kernel = _written(options.kernel, options.runs / "kernels" / f"{case.key}.py")
        only = ["--max-candidates", "1"]
        arguments += ["--start", str(kernel), *only]
        told += ["--start", f"kernel of {case.base.key}", *only]
    env = {"CUDA_VISIBLE_DEVICES": gpu} if options.device == "cuda" else {}
    command = [sys.executable, "-m", "hotloop", *arguments]
    done = run_command(until_we_end(command), env=env, deadline=options.deadline)
    if done.code is None:
        return None
    row: Row = {
        "problem": f"attention/{case.variant}",
        "row": case.key,
        "workload": _stated(case),
        "packing": case.packing,
        "timed_profile": case.profile,
        "generator": "builtin",
        "command": shlex.join(["hotloop", *told]),
        "wall_s": round(done.wall_s, 2),
        "gpu_index": gpu,
        "gpu_uuid": gpu_uuid(gpu) if options.device == "cuda" else None,
        "exit_code": done.code,
        "status": "ERROR",
        "family": None,
        "performance": None,
        "error": None,
    }
    try:
        row |= _found(done, folder)
        row |= _start_kernels(folder) if is_start(case) else {}
        return row | (_best_kernel(folder, row) if case in BASES else {})
    except (HotloopError, LookupError) as exc:
        return row | {"error": f"the run's answer or journal: {type(exc).__name__}: {exc}"}


def _written(text: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def until_we_end(command: Sequence[str]) -> list[str]:
    """Return a command that the kernel kills when this process, or the calling thread, is gone."""
    return [sys.executable, "-m", "benchmarks.attention_child", str(os.getpid()), *command]


def clear(folder: Path) -> None:
    """Remove a run folder that nobody writes to.

    Raises:
        RunHeld: a run holds it; names its pid.
    """
    if not folder.is_dir():
        return
    lock = FolderLock(folder)
    try:
        shutil.rmtree(folder)
    finally:
        lock.release()


def check_nothing_runs(runs: Path) -> None:
    """Check that no run is alive in `runs/COMMIT/ROW`: rows would be timed beside it.

    Raises:
        RunHeld: one is; names its folder and pid.
    """
    for path in sorted(runs.glob(f"*/*/{LOCK_FILE}")):
        FolderLock(path.parent).release()


def is_start(case: Case) -> bool:
    """Whether models begin with this row's kernels."""
    return case in {Case(variant, 128, MAIN_S) for variant in FIGURE}


def _stated(case: Case) -> Row:
    """Return the sizes of the files in `examples/attention`; the journal's account replaces it."""
    lengths = {"S": case.S, "Skv": case.S}
    return {"B": case.B, "H": H, "Hkv": H, **lengths, "D": case.D, "dtype": "bfloat16"}


def gpu_uuid(gpu: str) -> str | None:
    """Return the GPU's own name, for an index or a uuid; None where nvidia-smi does not say."""
    query = ["nvidia-smi", "-i", gpu, "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None


def _arguments(case: Case, folder: Path, options: RunOptions) -> list[str]:
    words = ["optimize", f"examples/attention/{case.variant}.py", "--device", options.device]
    words += ["--budget", budget_of(case, options.budget), "--set", case.settings]
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
        attempts = reader.attempts()
        best = next((a for a in attempts if a.id == best_attempt_id), None)
        setups = reader.notes("setup")
        found = _of_best(reader, best)
    found["verdicts"] = dict(Counter(a.verdict.status.value for a in attempts if a.verdict))
    if setups:
        info = setups[-1]["info"]
        found["workload"] = {k: info["attention"][k] for k in SIZES}
        found["setup_baselines_ms"] = info["baselines_ms"]
        found["missing_baselines"] = info["missing_baselines"]
        found["environment"] = info["environment"]
    return found


def _of_best(reader: RunReader, best: Attempt | None) -> Row:
    if best is None or best.candidate_id is None:
        return {"schedule": None, "family": None, "language": None}
    candidate = reader.candidate(best.candidate_id)
    return {
        "schedule": dict(best.point),
        "family": family_of(best.point, candidate),
        "language": candidate.language,
    }


def family_of(point: Mapping[str, Any], candidate: Candidate) -> str:
    """Return the kernel family of a built-in candidate: what its schedule says, else by language.

    A language without a family stands for itself.
    """
    named = point.get("family")
    return str(named) if named else FAMILIES.get(candidate.language, candidate.language)


def _start_kernels(folder: Path) -> Row:
    with hotloop.load_run(folder) as reader:
        return {"start_kernels": start_kernels(reader, reader.attempts())}


def _best_kernel(folder: Path, row: Row) -> Row:
    """Return the source of a row's own kernel, for the rows that time it; empty without one."""
    if row["status"] != "PASSED":
        return {}
    with hotloop.load_run(folder) as reader:
        return {"kernel_source": reader.candidate(row["candidate_id"]).text()}


def start_kernels(reader: RunReader, attempts: Sequence[Attempt]) -> dict[str, str]:
    """Return the source of the fastest kernel in each language: what a model can begin with."""
    found: dict[str, str] = {}
    for attempt in ranked(attempts):
        assert attempt.candidate_id is not None, "ranked() leaves out attempts without code"
        candidate = reader.candidate(attempt.candidate_id)
        found.setdefault(candidate.language, candidate.text())
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
