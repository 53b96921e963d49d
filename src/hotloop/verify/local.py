"""LocalVerifier: a judge on this machine, and the static stage before it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from hotloop.core.audit import Audit
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import (
    ConfigError,
    DeviceLost,
    HotloopError,
    InfraError,
    SandboxUnavailable,
    ToolMissing,
    WorkerDied,
    WorkerTimeout,
)
from hotloop.verify.gpu_choice import GpuChoice
from hotloop.verify.isolation_choice import choose_tier
from hotloop.verify.static_stage import static_verdict
from hotloop.verify.transport import JudgeProcess

HELLO_S = 180.0
LOAD_S = 1200.0
"""Compiling and autotuning the baselines takes minutes for some problems."""
SILENCE_S = 60.0
"""A judge that is silent for so long is stopped, or its machine hangs. While it verifies,
`engine/evaluation.py` asks it more often."""
BUILD_S = 150.0
VERIFY_S = 1200.0
"""Over what a judge waits for a candidate in all, `worker/patience.py`: a slow one is a verdict."""

KEPT_VARIABLES = (
    "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TMP", "TEMP", "VIRTUAL_ENV", "PYTHONPATH",
    "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH",
    "NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS", "CC", "CXX",
)  # fmt: skip
"""What a judge gets of our environment: where tools are; no API key passes."""


class LocalVerifier:
    """Implements `core.protocols.Verifier` with a judge process on this machine."""

    silence_s = SILENCE_S

    def __init__(
        self,
        device: str,
        *,
        min_isolation: str = "T1",
        log_path: Path | None = None,
        call_timeout_s: float | None = None,
        profile: bool = False,
        gpu: str | None = None,
    ) -> None:
        """Choose the isolation tier; no judge starts yet.

        Args:
            device: `cuda` or `cpu`.
            min_isolation: `T0`, `T1` or `T2`; less is an error.
            log_path: file that the judge's standard error is appended to.
            call_timeout_s: deadline of one call of a candidate; None for the device's own.
            profile: read hardware counters of each candidate that is faster than those before.
            gpu: index or UUID of the one GPU to use; None for the first that is visible.

        Raises:
            ConfigError: the tier's name is unknown.
            SandboxUnavailable: this machine cannot give the tier.
        """
        self.device = device
        self._call_timeout_s = call_timeout_s
        self._profile = profile
        self.gpus = GpuChoice(gpu)
        """Which GPU the judge gets; `gpus.lost` once none is left."""
        self._is_aborted = False
        self._is_loaded = False
        self._incumbent_ms: float | None = None
        self._tier = self._choose_tier(min_isolation)
        self._log: IO[bytes] | int = subprocess.DEVNULL
        if log_path is not None:
            self._log = log_path.open("ab")
        self._judge: JudgeProcess | None = None
        self._swap = threading.Lock()
        self._problem: Problem | None = None
        self.known_audit: Audit | None = None
        """Of the last problem loaded, or of an earlier run: it is not made again where it holds."""
        self.environment: dict[str, Any] = {}
        self.short_final = False  # whether its final tier is the short one

    def load(
        self,
        problem: Problem,
        *,
        incumbent_ms: float | None = None,
        ahead: Sequence[Candidate] = (),
    ) -> ProblemInfo:
        """Start a judge and load the problem. See `core.protocols.Verifier`.

        Args:
            problem: what to load.
            incumbent_ms: the best fast time that is known already; slower candidates are not
                profiled.
            ahead: what will be verified first; compiled beside the load.
        """
        if self._problem is not None and problem.id != self._problem.id:
            self._incumbent_ms = None
        if incumbent_ms is not None:
            self._incumbent_ms = incumbent_ms
        self._start()
        assert self._judge is not None
        params = {
            "problem": to_json(problem),
            "profile": self._profile,
            "incumbent_ms": self._incumbent_ms,
            "audit": to_json(self.known_audit),
            "ahead": [to_json(c) for c in ahead if self._static(c, Tier.FAST, problem) is None],
        }
        result = self._ask_long("load", params)
        self._problem = problem
        self._is_loaded = True
        info = from_json(ProblemInfo, result)
        self.known_audit = info.audit
        if shared := self.environment.get("gpu_shared"):
            info = replace(info, environment={**info.environment, "gpu_shared": shared})
        return info

    def audit(self, problem: Problem) -> Audit:
        """Find out which fakes the checks of a problem refuse, without timing anything.

        Raises:
            ProblemError: the reference is broken.
            InfraError: the machine is at fault.
        """
        self._start()
        return from_json(Audit, self._ask_long("audit", {"problem": to_json(problem)}))

    def build(self, candidate: Candidate) -> None:
        """Compile ahead. Rejected candidates are not built."""
        if self._static(candidate, Tier.FAST) is None:
            self._ask("build", {"candidate": to_json(candidate)}, BUILD_S)

    def verify(
        self, candidate: Candidate, tier: Tier, *, profile_below_ms: float | None = None
    ) -> Verdict:
        """Run the ladder: static rules here, the rest in the judge.

        Args:
            candidate: what to judge.
            tier: how thoroughly.
            profile_below_ms: read its hardware counters if it is faster than this; None: than all
                that were judged before.
        """
        rejected = self._static(candidate, tier)
        if rejected is not None:
            return rejected
        if self._judge is None and self._problem is not None:
            self.load(self._problem)  # the last one was dropped
        params = {
            "candidate": to_json(candidate),
            "tier": tier.value,
            "profile_below_ms": profile_below_ms,
            "short": self.short_final and tier is Tier.FINAL,
        }
        verdict = from_json(Verdict, self._ask("verify", params, VERIFY_S))
        if tier is Tier.FAST and verdict.performance is not None:
            best_ms = self._incumbent_ms or verdict.performance.latency_ms
            self._incumbent_ms = min(best_ms, verdict.performance.latency_ms)
        return verdict

    def is_alive(self, within_s: float) -> bool:
        """Whether the judge answers beside its work; one that starts or loads is left in peace."""
        judge = self._judge
        if judge is None or not self._is_loaded:
            return True
        try:
            judge.request("ping", {}, within_s)
        except InfraError:
            return False
        return True

    def abandon(self) -> None:
        """End a judge that does not answer, from any thread: a `verify` under way raises."""
        self._drop()

    def close(self) -> None:
        """End the judge. Idempotent."""
        if self._judge is not None:
            self._judge.close()
            self._judge = None
        if not isinstance(self._log, int):
            self._log.close()
            self._log = subprocess.DEVNULL

    def abort(self) -> None:
        """End the judge at once, from any thread: whoever waits for it gets `WorkerDied`.

        It is not started again. `close` is still to be called.
        """
        self._is_aborted = True
        judge = self._judge
        if judge is not None:
            judge.kill()

    def _start(self) -> None:
        if self._is_aborted:
            raise WorkerDied("expected a judge that goes on, it was stopped")
        if self._judge is not None:
            return
        self._is_loaded = False
        self._judge = self._spawn()
        if self._is_aborted:  # meanwhile, by another thread that saw no judge to end
            self._judge.kill()
        params = {
            "device": self.device,
            "tier": self._tier,
            "call_timeout_s": self._call_timeout_s,
        }
        try:
            self._greeted(self._ask("hello", params, HELLO_S))
        except HotloopError:
            self._drop()  # whatever it was: this judge serves nobody
            raise

    def _greeted(self, hello: Mapping[str, Any]) -> None:
        self.environment = hello["environment"]
        self.gpus.took(hello.get("gpu"))

    def _choose_tier(self, min_isolation: str) -> str:
        return choose_tier(min_isolation)

    def _spawn(self) -> JudgeProcess:
        env = {k: os.environ[k] for k in KEPT_VARIABLES if k in os.environ}
        if self.gpus.wanted is not None:
            env["CUDA_VISIBLE_DEVICES"] = self.gpus.wanted
        return JudgeProcess(self._command(), env, self._log)

    def _command(self) -> list[str]:
        return [sys.executable, "-P", "-m", "hotloop.worker.judge"]

    def _ask_long(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return self._ask(method, params, LOAD_S)
        except WorkerTimeout as exc:
            raise WorkerTimeout(
                f"the problem was not loaded within {LOAD_S:.0f} s and was given up: its reference "
                "does not end, or is too large for this machine; run the file by itself, or make "
                "its sizes smaller with --set"
            ) from exc

    def _ask(self, method: str, params: dict[str, Any], timeout_s: float) -> Any:
        if self.gpus.lost is not None:
            raise DeviceLost(str(self.gpus.lost))
        judge = self._judge  # builds come from other threads, which must not see it vanish
        if judge is None and self._problem is None:
            raise ConfigError("expected `load` before any candidate")
        if judge is None:
            raise WorkerDied("expected a running judge, it is being started again; verify instead")
        try:
            silence_s = None if method == "verify" else self.silence_s
            return judge.request(method, params, timeout_s, silence_s=silence_s)
        except (ToolMissing, SandboxUnavailable):
            raise  # an answer: the judge is fit for the next
        except DeviceLost as exc:
            self._drop(judge)
            raise self.gpus.leave(exc) from exc
        except InfraError:
            if method != "build":
                self._drop(judge)
            raise

    def _drop(self, only: JudgeProcess | None = None) -> None:
        # A judge that died, hung or lost its GPU is replaced by the next `verify` or `load`.
        with self._swap:
            if only is not None and self._judge is not only:
                return  # another thread dropped it, and another judge may have followed
            judge, self._judge = self._judge, None
        if judge is not None:
            judge.kill()

    def _static(
        self, candidate: Candidate, tier: Tier, problem: Problem | None = None
    ) -> Verdict | None:
        problem = problem or self._problem
        if problem is None:
            return None
        return static_verdict(
            candidate, problem, tier, device=self.device, environment=self.environment
        )
