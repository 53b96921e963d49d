"""The judge: one trusted process a GPU that loads problems and decides about candidates.

It speaks frames on stdin and stdout (see `core/wire.py`), so it works behind a pipe or behind ssh:
`judge_server.py`. It never imports candidate code and never sees an API key.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from hotloop import sandbox
from hotloop.core.audit import Audit
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Tier
from hotloop.core.wire import PROTOCOL_VERSION
from hotloop.errors import ConfigError, SandboxUnavailable
from hotloop.worker.audit_alone import audit_problem
from hotloop.worker.builds import Builds, signature_of
from hotloop.worker.device import check_device, environment, gpu_address
from hotloop.worker.gpu_probes import probes_of
from hotloop.worker.gpu_watch import GpuWatch
from hotloop.worker.judge_server import Server
from hotloop.worker.memory import release_memory
from hotloop.worker.other_shapes import Reporter
from hotloop.worker.profile import Profiler
from hotloop.worker.reference import Draw, Reference
from hotloop.worker.session import Session, Shortcuts
from hotloop.worker.verification import CALL_TIMEOUT_S, Verification
from hotloop.worker.workroom import Workroom


class Judge:
    """One problem session, its workroom and its builds."""

    def __init__(self, best_tier: sandbox.Tier, lanes: ThreadPoolExecutor) -> None:
        self._best_tier = best_tier
        self._lanes = lanes
        self._room: Workroom | None = None
        self._session: Session | None = None
        self._builds: Builds | None = None
        self._profiler: Profiler | None = None
        self._call_timeout_s = 0.0
        self._ready = threading.Event()
        """Set once shapes are known: builds that arrive earlier wait for it."""

    def hello(self, params: dict[str, Any]) -> Any:
        """Start the workroom on the device asked for, in no weaker cage than was asked for.

        Raises:
            SandboxUnavailable: this machine cannot give the tier. Its coordinator may be on another
                one, so that only the judge can know.
            DeviceLost: the GPU does not work.
        """
        device = params["device"]
        if list(sandbox.Tier).index(self._best_tier) < list(sandbox.Tier).index(params["tier"]):
            raise SandboxUnavailable(
                f"isolation {params['tier']}: the judge's machine reaches {self._best_tier}; run "
                "`hotloop doctor` there to see what is missing"
            )
        check_device(device)
        gpu = gpu_address() if device == "cuda" else None
        self._room = Workroom(device, tier=params["tier"], gpu=gpu)
        self._call_timeout_s = params["call_timeout_s"] or CALL_TIMEOUT_S[device]
        found = environment(device, params["tier"])
        if gpu is not None:
            self._room.watch = GpuWatch(gpu.uuid, probes_of(gpu.uuid))
            found["gpu_shared"] = self._room.watch.begin()
        uuid = None if gpu is None else gpu.uuid
        return {"protocol": PROTOCOL_VERSION, "environment": found, "gpu": uuid}

    def load(self, params: dict[str, Any]) -> Any:
        """Load a problem and measure its baselines.

        `profile`: read hardware counters of every candidate that is faster than `incumbent_ms` and
        than those before it. `audit`: that of an earlier load, taken over where it still holds.
        `ahead`: candidates that are built as soon as shapes are known, beside the rest of the load.
        All may be left out.
        """
        room = self._workroom()
        problem = from_json(Problem, params["problem"])
        if self._session is not None:
            self._session.close()
            self._session = None
        known = from_json(Audit, params["audit"]) if params.get("audit") else None
        ahead = [from_json(Candidate, c) for c in params.get("ahead") or ()]
        running: list[Future[Any]] = []

        def begin_builds(reference: Reference, draw: Draw) -> None:
            init_args = tuple(reference.loaded.init_args or ())
            builds = Builds(room, signature_of(init_args, draw.inputs, draw.state))
            self._builds = builds
            self._ready.set()
            # What fails there is kept for `verify`, or happens there again.
            running.extend(self._lanes.submit(builds.get, candidate) for candidate in ahead)

        shortcuts = Shortcuts(
            known=known, on_first_case=begin_builds, await_quiet=lambda: _await_all(running)
        )
        try:
            session = Session(problem, room.device, isolation=room.tier, shortcuts=shortcuts)
        finally:
            _await_all(running)  # of a load that failed none goes on beside the next one
        self._profiler = None
        if params.get("profile") and room.device == "cuda":
            self._profiler = Profiler(room, incumbent_ms=params.get("incumbent_ms"))
        self._session = session
        return to_json(session.info)

    def audit(self, params: dict[str, Any]) -> Any:
        """Audit a problem by itself: nothing is timed, and what is loaded stays loaded."""
        room = self._workroom()
        return to_json(audit_problem(from_json(Problem, params["problem"]), room.device))

    def build(self, params: dict[str, Any]) -> Any:
        """Compile a candidate ahead; its failure is kept for `verify`."""
        self._ready.wait()
        assert self._builds is not None
        build = self._builds.get(from_json(Candidate, params["candidate"]))
        return {"seconds": build.seconds, "ok": build.failure is None}

    def verify(self, params: dict[str, Any]) -> Any:
        """Run the ladder on one candidate.

        `profile_below_ms`: the time to beat for its counters to be read, instead of the best one
        so far. `short`: the final tier without sanitizers and reported shapes, with half the
        rounds. Both may be left out.
        """
        if self._session is None or self._builds is None:
            raise ConfigError("expected a loaded problem before the first candidate")
        candidate = from_json(Candidate, params["candidate"])
        tier, short = Tier(params["tier"]), bool(params.get("short"))
        if self._profiler is not None and params.get("profile_below_ms") is not None:
            self._profiler.set_best(float(params["profile_below_ms"]))
        verification = Verification(
            self._session,
            self._workroom(),
            self._builds,
            candidate,
            call_timeout_s=self._call_timeout_s,
            profiler=self._profiler,
            short=short,
        )
        verdict = verification.run(tier)
        if tier is Tier.FINAL and verdict.passed and not short:
            build = self._builds.get(candidate)
            verdict = Reporter(self._session, self._workroom(), candidate, build).report(verdict)
        watch = self._workroom().watch
        if watch is not None:
            watch.settle(verdict)
        if not (tier is Tier.FAST and verdict.passed):  # a passed one may come back for its final
            self._builds.discard(candidate.id)
        release_memory()
        return to_json(verdict)

    def close(self) -> None:
        """End everything below."""
        if self._room is not None:
            self._room.close()

    def _workroom(self) -> Workroom:
        if self._room is None:
            raise ConfigError("expected `hello` first")
        return self._room


def _await_all(builds: Sequence[Future[Any]]) -> None:
    """Drop what has not begun, and wait for the rest."""
    for build in builds:
        build.cancel()
    wait(builds)


def main() -> None:
    """Serve on stdin and stdout; whatever else writes to stdout goes to stderr."""
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    best_tier = sandbox.probe().best_tier  # forks, so it comes before any thread
    count = max(1, min(8, (os.cpu_count() or 2) // 2))
    lanes = ThreadPoolExecutor(count, thread_name_prefix="lane")
    judge = Judge(best_tier, lanes)
    Server(judge, sys.stdin.buffer, sink, lanes).run()
    os._exit(0)  # interpreter shutdown of torch and inductor's pools can hang; all work is done


if __name__ == "__main__":
    main()
