"""One oracle process, asked line by line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.mutation.substrates import Substrate
from benchmarks.results_file import ROOT

LIMIT_S = {"cpu": 30.0, "cuda": 15.0}
"""For all cases of one mutant: processor time on a CPU, wall clock on a GPU."""


class OracleClient:
    """Starts an oracle and asks it; a context manager."""

    def __init__(self, log: Path, *, device: str = "cpu", gpu: str = "") -> None:
        self._device = device
        self._log = log.open("ab")
        self._cache = tempfile.mkdtemp(prefix="oracle-cache-")
        self._env = _environment(device, gpu, self._cache)
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.mutation.oracle", self._device],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, cwd=ROOT,
            env=self._env, text=True,
        )  # fmt: skip

    def __enter__(self) -> OracleClient:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._close_pipes()
        self._log.close()
        shutil.rmtree(self._cache, ignore_errors=True)

    def load(self, substrate: Substrate, problem: str, kernel: str) -> dict[str, Any]:
        """Give it a problem and the correct kernel; returns how far that one is off at most."""
        if self._process.poll() is not None:
            self._close_pipes()
            self._process = self._started()
        return self._ask(
            {
                "op": "load",
                "source": problem,
                "settings": dict(substrate.settings),
                "workloads": {k: dict(v) for k, v in substrate.workloads.items()},
                "fixed": list(substrate.fixed_inputs),
                "language": substrate.language,
                "kernel": kernel,
            }
        )

    def judge(self, kernels: Sequence[str], *, left_s: float) -> list[dict[str, Any]]:
        """Search for inputs on which each kernel is wrong.

        Args:
            kernels: sources.
            left_s: for all of them, on a GPU; fewer answers come back where it is not enough.
        """
        asked = {"op": "try", "kernels": list(kernels), "limit_s": LIMIT_S[self._device]}
        answers: list[dict[str, Any]] = self._ask({**asked, "left_s": left_s})["answers"]
        return answers

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # what was written and never read
                    pipe.close()

    def _ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("expected an answer of the oracle, it ended; see its log")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _environment(device: str, gpu: str, cache: str) -> dict[str, str]:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")])
    env.pop("TRITON_INTERPRET", None)
    if device == "cpu":
        return env | {"TRITON_INTERPRET": "1"}
    env |= {"TRITON_CACHE_DIR": cache, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    return env | ({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})
