"""Run ncu on a process that launches a recording, with a deadline; a refusal is words.

Clocks are left as they are (ncu would lock them), caches are flushed before each pass as timed
calls have them, and everything that the tool writes goes to one folder. Counters and refusals are
read from the tool's log alone: to the watched process's output, kept apart, a candidate's kernels
can print. Not a clock: under a profiler kernels run many times, so no duration leaves this file
except as a share.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotloop import sandbox
from hotloop.worker.cuda_compiler import TOOLKIT_FOLDERS
from hotloop.worker.profile_host import ZEROS
from hotloop.worker.profile_metrics import METRIC_SETS, read_table, summarise
from hotloop.worker.watched import read_last_line, read_start, run_watched

DEADLINE_S = 20.0
MAX_LAUNCHES = 12
LOG, OUTPUT = "ncu.log", "output.txt"
"""What the tool wrote, and what the process that it watched printed."""
COMPLAINTS = ("==ERROR==", "==WARNING==")
NO_PERMISSION = "ERR_NVGPUCTRPERM"
"""ncu's name for counters that this user may not read."""
_INSTALLED = "/opt/nvidia/nsight-compute/*"
_HOST_MODULE = "hotloop.worker.profile_host"


@dataclass(frozen=True, slots=True)
class Counters:
    """What the profiler found, or why it found nothing."""

    values: Mapping[str, float] = field(default_factory=dict)
    kernel: str | None = None
    refused: str | None = None
    for_good: bool = False
    """The refusal holds for every candidate on this machine."""


def find_ncu() -> str | None:
    """Return the path of ncu: on PATH, in the CUDA toolkit, or where its own package puts it."""
    homes = [os.environ.get("CUDA_HOME"), *TOOLKIT_FOLDERS]
    places = [f"{home}/bin" for home in homes if home] + sorted(glob.glob(_INSTALLED), reverse=True)
    return shutil.which("ncu", path=os.pathsep.join([os.environ.get("PATH", os.defpath), *places]))


def read_counters(
    message: Mapping[str, Any],
    folder: Path,
    env: Mapping[str, str],
    *,
    deadline_s: float = DEADLINE_S,
) -> Counters:
    """Profile the launches of a message for `profile_host.py`.

    Args:
        message: JSON values.
        folder: private to the judge; everything is written there.
        env: the environment of the profiled process.
        deadline_s: for everything together.

    Raises:
        OSError: the folder cannot be written or ncu cannot be started.
    """
    ncu = find_ncu()
    if ncu is None:
        return Counters(refused="ncu (Nsight Compute) is not installed", for_good=True)
    target = folder / "message.json"
    target.write_text(json.dumps(message), encoding="utf-8")
    end = time.monotonic() + deadline_s
    log = ""
    for metrics in METRIC_SETS:
        command = _command(ncu, metrics, target)
        finished = _run(command, folder, env, end - time.monotonic())
        log = read_start(folder / LOG)
        if finished:
            with suppress(ValueError):  # no counters: ask for fewer
                kernel, values = summarise(read_table(log))
                return Counters(values | _data(read_last_line(folder / OUTPUT)), kernel)
        if _lacks_permission(log):
            text = f"this user may not read the GPU's performance counters ({NO_PERMISSION})"
            return Counters(refused=text, for_good=True)
        if not finished:
            return Counters(refused=f"ncu did not finish within {deadline_s:.0f} s")
    words = _last_words(log, read_last_line(folder / OUTPUT))
    return Counters(refused=f"ncu gave no counters: {words}")


def _command(ncu: str, metrics: Sequence[str], message: Path) -> list[str]:
    return [
        ncu,
        *("--csv", "--page", "raw", "--print-units", "base"),
        *("--metrics", ",".join(metrics)),
        *("--clock-control", "none", "--cache-control", "all", "--replay-mode", "kernel"),
        *("--target-processes", "application-only", "--launch-count", str(MAX_LAUNCHES)),
        *("--log-file", str(message.with_name(LOG))),
        *(sys.executable, "-P", "-m", _HOST_MODULE, str(message)),
    ]


def _run(command: list[str], folder: Path, env: Mapping[str, str], timeout_s: float) -> bool:
    """Run a command with everything below it; return whether it ended by itself."""
    # Its lock file and its reports go to TMPDIR, section files to HOME unless told not to.
    own = {"NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1"}
    (folder / LOG).unlink(missing_ok=True)
    return run_watched(command, folder, {**env, **own}, timeout_s, output=OUTPUT) is not None


def _lacks_permission(log: str) -> bool:
    """Whether an error of the tool's own, not a name or a value in its table, says so."""
    return any(line.startswith("==ERROR==") and NO_PERMISSION in line for line in log.split("\n"))


def _data(last_line: str) -> dict[str, float]:
    """Return a mark where the kernels ran on zeros instead of the judge's inputs.

    What a kernel prints can end in the host's line; a line that is none marks nothing.
    """
    try:
        said = json.loads(last_line[last_line.rfind("{") :])
    except ValueError:
        return {}
    return {"zero_inputs": 1.0} if isinstance(said, dict) and said.get("data") == ZEROS else {}


def _last_words(log: str, last_line: str) -> str:
    """Return the tool's last complaint and the watched process's last line, short."""
    lines = [line.strip() for line in log.split("\n") if line.strip()]
    complaints = [line for line in lines if line.startswith(COMPLAINTS)]
    others = [line for line in lines if not line.startswith("==")]
    words = [line[:120] for line in (complaints[-1:] or others[-1:])]
    if last_line:
        words.append(f'the watched process printed "{last_line[:120]}"')
    return " ".join(sandbox.sanitise("; ".join(words) or "it wrote nothing").split())
