"""Run ncu on a process that launches a recording, with a deadline; a refusal is words.

Clocks are left as they are (ncu would lock them), caches are flushed before each pass as timed
calls have them, and everything that the tool writes goes to one folder. Not a clock: under a
profiler kernels run many times, so no duration leaves this file except as a share.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
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

DEADLINE_S = 20.0
KILL_S = 5.0
MAX_LAUNCHES = 12
MAX_OUTPUT_BYTES = 4 << 20
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
    seen = ""
    for metrics in METRIC_SETS:
        command = _command(ncu, metrics, target)
        finished = _run(command, folder, env, end - time.monotonic())
        seen = _written(folder)
        if NO_PERMISSION in seen:
            text = f"this user may not read the GPU's performance counters ({NO_PERMISSION})"
            return Counters(refused=text, for_good=True)
        if not finished:
            return Counters(refused=f"ncu did not finish within {deadline_s:.0f} s")
        with suppress(ValueError):  # no counters: ask for fewer
            kernel, values = summarise(read_table(seen))
            return Counters(values | _data(seen), kernel)
    return Counters(refused=f"ncu gave no counters: {_last_words(seen)}")


def _command(ncu: str, metrics: Sequence[str], message: Path) -> list[str]:
    return [
        ncu,
        *("--csv", "--page", "raw", "--print-units", "base"),
        *("--metrics", ",".join(metrics)),
        *("--clock-control", "none", "--cache-control", "all", "--replay-mode", "kernel"),
        *("--target-processes", "application-only", "--launch-count", str(MAX_LAUNCHES)),
        *("--log-file", str(message.with_name("ncu.log"))),
        *(sys.executable, "-P", "-m", _HOST_MODULE, str(message)),
    ]


def _run(command: list[str], folder: Path, env: Mapping[str, str], timeout_s: float) -> bool:
    """Run a command with everything below it; return whether it ended by itself."""
    own = {
        # Its lock file and its reports go to TMPDIR, section files to HOME unless told not to.
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "NV_COMPUTE_PROFILER_DISABLE_STOCK_FILE_DEPLOYMENT": "1",
    }
    if os.environ.get("PYTHONPATH"):
        own["PYTHONPATH"] = os.environ["PYTHONPATH"]
    for name in ("ncu.log", "output.txt"):
        (folder / name).unlink(missing_ok=True)
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**env, **own},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        process.wait(timeout=max(0.1, timeout_s))
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        sandbox.kill_tree(process.pid, timeout_s=KILL_S)
        with suppress(subprocess.TimeoutExpired):  # a process inside a driver can outlast a signal
            process.wait(timeout=KILL_S)


def _written(folder: Path) -> str:
    """Return what the tool and the process wrote; the table is in the first."""
    parts = []
    for name in ("ncu.log", "output.txt"):
        path = folder / name
        if path.exists():
            with path.open("rb") as file:
                parts.append(file.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace"))
    return "\n".join(parts)


def _data(seen: str) -> dict[str, float]:
    """Return a mark where the kernels ran on zeros instead of the judge's inputs."""
    return {"zero_inputs": 1.0} if f'"data": "{ZEROS}"' in seen else {}


def _last_words(seen: str) -> str:
    """Return the tool's last complaint and the process's last line, short."""
    lines = [line.strip() for line in seen.splitlines() if line.strip()]
    complaints = [line for line in lines if line.startswith(("==ERROR==", "==WARNING=="))]
    others = [line for line in lines if not line.startswith("==")]
    words = [line[:120] for line in (*complaints[-1:], *others[-1:])]
    return sandbox.sanitise("; ".join(words) or "it wrote nothing")
