"""The judge: one trusted process a GPU that loads problems and decides about candidates.

It speaks frames on stdin and stdout (see `core/wire.py`), so it works behind a pipe or behind ssh:
`judge_server.py`. It never imports candidate code and never sees an API key.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import torch

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
from hotloop.worker.kept_memory import Kept
from hotloop.worker.memory import ran_out, release_memory
from hotloop.worker.other_shapes import Reporter
from hotloop.worker.profile import Profiler
from hotloop.worker.reference import Draw, Reference
from hotloop.worker.session import Session, Shortcuts
from hotloop.worker.timing_turns import NoTurns, TimingTurns
from hotloop.worker.verification import CALL_TIMEOUT_S, Verification
from hotloop.worker.workroom import Workroom

LARGE_FRAC = 1 / 128
"""Of the GPU's memory: a problem with more inputs and parameters, or inputs and outputs, has a
shared GPU to itself. A final tier may need 16 times as much (`Session.fresh_books`), and eight
judges fit."""


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
        self._turns = NoTurns()
        self._ready = threading.Event()
        """Set once shapes are known: builds that arrive earlier wait for it."""

    def hello(self, params: dict[str, Any]) -> Any:
        """Start the workroom on the device asked for, in no weaker cage than was asked for.

        `turns`: the folder by which judges that share the GPU take turns at timing; None where
        there is one. May be left out. `judges`: how many they are, beside `turns`.

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
            if params.get("turns"):
                self._turns = TimingTurns(
                    Path(params["turns"]), gpu.uuid, judges=params["judges"], settle=_settle
                )
            self._room.watch = GpuWatch(gpu.uuid, probes_of(gpu.uuid))
            # Without a turn: who has one may keep it for minutes, and this is a test of 10 ms.
            found["gpu_shared"] = self._room.watch.begin(neighbours=self._turns.shares)
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
        self.rest({})
        known = from_json(Audit, params["audit"]) if params.get("audit") else None
        ahead = [from_json(Candidate, c) for c in params.get("ahead") or ()]
        running: list[Future[Any]] = []

        def make_room(reference: Reference) -> None:
            if reference.io_bytes > large_bytes(room.device):
                self._be_alone()

        def begin_builds(reference: Reference, draw: Draw) -> None:
            init_args = tuple(reference.loaded.init_args or ())
            builds = Builds(room, signature_of(init_args, draw.inputs, draw.state))
            self._builds = builds
            self._ready.set()
            # What fails there is kept for `verify`, or happens there again.
            running.extend(self._lanes.submit(builds.get, candidate) for candidate in ahead)

        shortcuts = Shortcuts(
            known=known, on_reference=make_room, on_first_case=begin_builds,
            await_quiet=lambda: _await_all(running),
        )  # fmt: skip
        try:
            session = self._open(problem, shortcuts)
        except BaseException:
            self._leave()
            raise
        finally:
            _await_all(running)  # of a load that failed none goes on beside the next one
        self._profiler = None
        if params.get("profile") and room.device == "cuda":
            self._profiler = Profiler(room, incumbent_ms=params.get("incumbent_ms"))
        self._session = session
        return to_json(session.info)

    def _open(self, problem: Problem, shortcuts: Shortcuts) -> Session:
        """Load a problem beside the other judges, and without them where memory runs out."""
        try:
            return self._session_of(problem, shortcuts)
        except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
            if not (self._turns.shares and ran_out(exc)):
                raise
        self._be_alone()  # out of the handler: the exception's frames hold memory
        return self._session_of(problem, shortcuts)

    def _session_of(self, problem: Problem, shortcuts: Shortcuts) -> Session:
        room = self._workroom()
        with self._turns.beside():
            return Session(
                problem, room.device,
                isolation=room.tier, shortcuts=shortcuts, turns=self._turns,
            )  # fmt: skip

    def _be_alone(self) -> None:
        """Have the GPU until the next problem, and keep what one judge alone would keep there."""
        release_memory()
        self._turns.stay_alone()
        Kept.share = 1.0

    def rest(self, params: dict[str, Any]) -> None:
        """Forget the problem: its memory, and the GPU that it may have had to itself."""
        if self._session is not None:
            with self._turns.beside():
                self._session.close()
                self._session = None
        self._leave()

    def audit(self, params: dict[str, Any]) -> Any:
        """Audit a problem by itself: nothing is timed, and what is loaded stays loaded."""
        room = self._workroom()
        with self._turns.beside():
            found = audit_problem(from_json(Problem, params["problem"]), room.device)
        return to_json(found)

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
        with self._turns.beside():
            verdict = verification.run(tier)
            if tier is Tier.FINAL and verdict.passed and not short:
                room, build = self._workroom(), self._builds.get(candidate)
                verdict = Reporter(self._session, room, candidate, build).report(verdict)
            watch = self._workroom().watch
            if watch is not None:
                watch.settle(verdict)
            release_memory()
        if not (tier is Tier.FAST and verdict.passed):  # a passed one may come back for its final
            self._builds.discard(candidate.id)
        return to_json(verdict)

    def close(self) -> None:
        """End everything below."""
        if self._room is not None:
            self._room.close()

    def _leave(self) -> None:
        """Let the others use the GPU, and keep no more of it than each of them may."""
        self._turns.release()
        Kept.share = 1.0 / self._turns.judges

    def _workroom(self) -> Workroom:
        if self._room is None:
            raise ConfigError("expected `hello` first")
        return self._room


def large_bytes(device: str) -> float:
    """Return from how many bytes on a problem has a shared GPU to itself."""
    total = torch.cuda.get_device_properties(0).total_memory if device == "cuda" else float("inf")
    return LARGE_FRAC * total


def _settle() -> None:
    """Wait for this process's work on the GPU; one whose context is lost has none."""
    with contextlib.suppress(RuntimeError):
        torch.cuda.synchronize()


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
