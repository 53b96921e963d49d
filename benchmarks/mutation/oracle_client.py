"""One oracle process, asked line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.mutation.substrates import Substrate
from benchmarks.results_file import ROOT

LIMIT_S = 30.0
"""For all cases of one mutant."""


class OracleClient:
    """Starts an oracle and asks it; a context manager."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("ab")
        env = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.mutation.oracle"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=env, cwd=ROOT,
            text=True,
        )  # fmt: skip

    def __enter__(self) -> OracleClient:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._log.close()

    def load(self, substrate: Substrate, problem: str, kernel: str) -> dict[str, Any]:
        """Give it a problem and the correct kernel; returns how far that one is off at most."""
        return self._ask(
            {
                "op": "load",
                "source": problem,
                "settings": dict(substrate.settings),
                "workloads": {k: dict(v) for k, v in substrate.workloads.items()},
                "fixed": list(substrate.fixed_inputs),
                "kernel": kernel,
            }
        )

    def judge(self, kernel: str) -> dict[str, Any]:
        """Search for an input on which the kernel is wrong."""
        return self._ask({"op": "try", "kernel": kernel, "limit_s": LIMIT_S})

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
