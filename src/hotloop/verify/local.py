"""LocalVerifier: a judge on this machine, and the static stage before it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from hotloop import sandbox
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.errors import ConfigError, InfraError, SandboxUnavailable, ToolMissing, WorkerDied
from hotloop.verify.static_rules import check_candidate
from hotloop.verify.transport import JudgeProcess

HELLO_S = 180.0
LOAD_S = 1200.0
"""Compiling and autotuning the baselines takes minutes for some problems."""
BUILD_S = 150.0
VERIFY_S = 1200.0
"""Over what a judge waits for a candidate in all, `worker/patience.py`: a slow one is a verdict."""

_KEPT_VARIABLES = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TMP", "TEMP", "VIRTUAL_ENV", "PYTHONPATH",
    "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH",
    "NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS", "CC", "CXX",
)  # fmt: skip
"""What a judge gets of our environment: where tools are; no API key passes."""


class LocalVerifier:
    """Implements `core.protocols.Verifier` with a judge process on this machine."""

    def __init__(
        self,
        device: str,
        *,
        min_isolation: str = "T1",
        log_path: Path | None = None,
        call_timeout_s: float | None = None,
    ) -> None:
        """Choose the isolation tier; the judge starts with the first `load`.

        Args:
            device: `cuda` or `cpu`.
            min_isolation: `T0`, `T1` or `T2`; less is an error.
            log_path: file that the judge's standard error is appended to.
            call_timeout_s: deadline of one call of a candidate; None for the device's own.

        Raises:
            ConfigError: the tier's name is unknown.
            SandboxUnavailable: this machine cannot give the tier.
        """
        self.device = device
        self._call_timeout_s = call_timeout_s
        self._tier = choose_tier(min_isolation)
        self._log: IO[bytes] | int = subprocess.DEVNULL
        if log_path is not None:
            self._log = log_path.open("ab")
        self._judge: JudgeProcess | None = None
        self._problem: Problem | None = None
        self.environment: dict[str, Any] = {}

    def load(self, problem: Problem) -> ProblemInfo:
        """Start a judge and load the problem. See `core.protocols.Verifier`."""
        self._start()
        assert self._judge is not None
        result = self._ask("load", {"problem": to_json(problem)}, LOAD_S)
        self._problem = problem
        return from_json(ProblemInfo, result)

    def build(self, candidate: Candidate) -> None:
        """Compile ahead. Rejected candidates are not built."""
        if self._static(candidate, Tier.FAST) is None:
            self._ask("build", {"candidate": to_json(candidate)}, BUILD_S)

    def verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        """Run the ladder: static rules here, the rest in the judge."""
        rejected = self._static(candidate, tier)
        if rejected is not None:
            return rejected
        if self._judge is None and self._problem is not None:
            self.load(self._problem)  # the last one was dropped
        params = {"candidate": to_json(candidate), "tier": tier.value}
        return from_json(Verdict, self._ask("verify", params, VERIFY_S))

    def close(self) -> None:
        """End the judge. Idempotent."""
        if self._judge is not None:
            self._judge.close()
            self._judge = None
        if not isinstance(self._log, int):
            self._log.close()
            self._log = subprocess.DEVNULL

    def _start(self) -> None:
        if self._judge is not None:
            return
        env = {k: os.environ[k] for k in _KEPT_VARIABLES if k in os.environ}
        command = [sys.executable, "-P", "-m", "hotloop.worker.judge"]
        self._judge = JudgeProcess(command, env, self._log)
        hello = self._ask(
            "hello",
            {
                "device": self.device,
                "tier": self._tier,
                "call_timeout_s": self._call_timeout_s,
            },
            HELLO_S,
        )
        self.environment = hello["environment"]

    def _ask(self, method: str, params: dict[str, Any], timeout_s: float) -> Any:
        judge = self._judge  # builds come from other threads, which must not see it vanish
        if judge is None and self._problem is not None:
            raise WorkerDied("expected a running judge, it is being started again; verify instead")
        if judge is None:
            raise ConfigError("expected `load` before any candidate")
        try:
            return judge.request(method, params, timeout_s)
        except (ToolMissing, SandboxUnavailable):
            raise  # an answer: the judge and what it loaded are fit for the next
        except InfraError:
            if method != "build":
                self._drop()
            raise

    def _drop(self) -> None:
        # A judge that died, hung or lost its GPU is replaced by the next `verify` or `load`.
        judge, self._judge = self._judge, None
        if judge is not None:
            judge.kill()

    def _static(self, candidate: Candidate, tier: Tier) -> Verdict | None:
        if self._problem is None:
            return None
        start = time.monotonic()
        found = check_candidate(candidate, self._problem.policy)
        if found is None:
            return None
        status = Status.REJECTED_STATIC if found.rule != "no_code" else Status.NO_CODE
        return Verdict(
            status=status,
            stage=Stage.STATIC if status is Status.REJECTED_STATIC else Stage.EXTRACT,
            message=found.message,
            candidate_id=candidate.id,
            problem_id=self._problem.id,
            tier=tier,
            device=self.device,
            evidence=Evidence(
                kind="policy_violation",
                message=found.message,
                details={"rule": found.rule, "line": found.line},
            ),
            isolation=self._tier,
            precision_policy=self._problem.policy.precision,
            shape_scope=self._problem.policy.shape_scope,
            checks=("static",),
            stage_s={"static": time.monotonic() - start},
            environment=self.environment,
        )


def choose_tier(min_isolation: str) -> str:
    """Return the tier to run at: T1, or what `min_isolation` demands.

    Raises:
        ConfigError: the name is unknown.
        SandboxUnavailable: this machine cannot give it.
    """
    order = ("T0", "T1", "T2")
    if min_isolation not in order:
        raise ConfigError(f"--min-isolation: expected T0, T1 or T2, got {min_isolation!r}")
    best = str(sandbox.probe().best_tier)
    if order.index(best) < order.index(min_isolation):
        raise SandboxUnavailable(
            f"--min-isolation {min_isolation}: this machine reaches {best}; run `hotloop doctor` "
            "to see what is missing"
        )
    return min_isolation
