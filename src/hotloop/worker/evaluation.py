"""One evaluation: a fresh candidate process on an arena, and what the judge asks of it.

The candidate's answers are claims (`claims.py`), and its time is limited, each answer and all of
them (`patience.py`). This file turns its failures into verdict evidence; the stages
(`correctness.py`, `performance.py`) look at the arena.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hotloop.core.candidate import Candidate
from hotloop.core.record import to_json
from hotloop.core.units import s_to_ms
from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.errors import InfraError, WorkerDied, WorkerTimeout
from hotloop.worker import claims, told
from hotloop.worker.arguments import encode_args
from hotloop.worker.board import Board, describe_set
from hotloop.worker.children import Child, ChildDied, ChildTimeout
from hotloop.worker.constructor_words import with_call
from hotloop.worker.patience import Patience
from hotloop.worker.untimed import Untimed, WatchedCall
from hotloop.worker.workroom import Workroom

T = TypeVar("T")

LOAD_S = 120.0
CALL_S = 60.0
HAND_OVER_MS = 5.0
"""What waking the candidate for `prepare()`, and looking for replaced functions behind it, may take
(2.0 to 4.3 ms for kernels that have none, on an H200's host: `kernelbench_again_verdicts.jsonl.gz`
among the recordings); over that, the judge's own clock stands."""


class Failed(Exception):
    """The candidate failed: how, at which stage, with what evidence. Data, no error of ours."""

    def __init__(self, status: Status, stage: Stage, evidence: Evidence) -> None:
        super().__init__(evidence.message)
        self.status = status
        self.stage = stage
        self.evidence = evidence

    def on(self, details: Mapping[str, Any]) -> Failed:
        """Return the same failure with more details, which are the judge's own and win."""
        evidence = dataclasses.replace(self.evidence, details={**self.evidence.details, **details})
        return Failed(self.status, self.stage, evidence)


@dataclass(slots=True)
class Evaluation:
    """A candidate process and the board it works on."""

    child: Child
    board: Board
    candidate: Candidate
    device: str
    patience: Patience = field(default_factory=Patience)
    prepare_ms: list[float] = field(default_factory=list)

    @classmethod
    def start(
        cls, room: Workroom, board: Board, candidate: Candidate, *, folder: Path, patience: Patience
    ) -> Evaluation:
        """Fork the candidate's process; nothing of it has run yet."""
        child = room.start_candidate(folder, board.arena.fd)
        return cls(child, board, candidate, room.device, patience)

    def attach(self) -> None:
        """Let the process map the arena, before it is sent anything of the candidate.

        Raises:
            InfraError: it cannot; only code of ours has run in it.
        """
        message = {
            "op": "attach",
            "device": self.device,
            "arena": self.board.arena.token,
            "entry": self.candidate.entry,
        }
        try:
            answer = self.child.request(message, LOAD_S)
        except ChildTimeout as exc:
            raise WorkerTimeout(f"a process could not map the judge's buffers: {exc}") from None
        except ChildDied as exc:
            raise WorkerDied(
                f"a process ended while it mapped the judge's buffers: {exc}"
            ) from None
        if "error" in answer:
            text = f"{answer['error']['type']}: {answer['error']['message']}"
            raise InfraError(f"a process could not map the judge's buffers: {text[:500]}")

    def load(self, init_args: Sequence[Any], *, buffers_alike: bool = False) -> None:
        """Load the candidate into the attached process and bind the state.

        Args:
            init_args: of its constructor.
            buffers_alike: whether buffers that it registers must have the reference's shapes and
                dtypes. Attention's captured tensors have to, at the problem's own sizes: of others
                a constructor without arguments cannot know.

        Raises:
            Failed: it cannot be loaded.
        """
        # An earlier candidate may have broken the red zones, or left a smaller layout's there.
        self.board.arena.fill_gaps(self.board.layout)
        message = {
            "op": "load",
            "device": self.device,
            "sources": to_json(self.candidate.sources),
            "entry": self.candidate.entry,
            "pins": to_json(self.candidate.pins),
            "init_args": [encode_args(a) for a in init_args],
            "state": {n: s.to_json() for n, s in self.board.state.items()},
            "sets": [describe_set(*s) for s in self.board.sets],
            "reserve_bytes": self.board.reserve_bytes,
            "buffers_alike": buffers_alike,
            "precision": self.board.precision,
        }
        try:
            self.ask(message, LOAD_S, Stage.CORRECTNESS)
        except Failed as failed:
            failed.evidence = with_call(failed.evidence, len(init_args))
            raise
        self.check_alone("loading the file")

    def prepare(self) -> None:
        """Tell the candidate that its parameters and buffers changed; notes how long it took."""
        start = time.perf_counter()
        answer = self.ask({"op": "prepare"}, CALL_S, Stage.CORRECTNESS)
        wall_ms = s_to_ms(time.perf_counter() - start)
        self.check_alone("prepare()")
        claimed_ms = self._read(lambda: claims.number(answer, "prepare_ms"), Stage.CORRECTNESS)
        self.prepare_ms.append(max(claimed_ms, wall_ms - HAND_OVER_MS))

    def call(self, index: int, timeout_s: float = CALL_S) -> list[dict[str, Any]]:
        """Run one forward on set `index`; return what the process says of its outputs."""
        answer = self.ask(Untimed().request(index), timeout_s, Stage.CORRECTNESS)
        return self._read(lambda: claims.objects(answer, "outputs"), Stage.CORRECTNESS)

    def watched_call(self, index: int, timeout_s: float, how: Untimed) -> WatchedCall:
        """Run one forward on set `index` and tell what it did."""
        answer = self.ask(how.request(index), timeout_s, Stage.CORRECTNESS)
        has_python = self.candidate.entry.endswith(".py")
        return self._read(
            lambda: WatchedCall.read(answer, has_python=has_python, bare=how.bare),
            Stage.CORRECTNESS,
        )

    def timed_call(self, index: int) -> claims.TimedCall:
        """Run one forward on set `index` under the process's own clock."""
        message = {"op": "call", "set": index, "timed": True}
        answer = self.ask(message, CALL_S, Stage.PERFORMANCE)
        return self._read(lambda: claims.TimedCall.read(answer), Stage.PERFORMANCE)

    def timed_work(self, index: int) -> WatchedCall:
        """Run one forward as if it were timed; return what is said of it. Its time is of no use."""
        message = Untimed(bare=True).request(index) | {"timed": True}
        answer = self.ask(message, CALL_S, Stage.PERFORMANCE)
        return self._read(
            lambda: WatchedCall.read(answer, has_python=True, bare=True), Stage.PERFORMANCE
        )

    def batch(self, *, repeats: int = 1, capture: bool = False) -> dict[str, Any]:
        """Run all sets `repeats` times (or capture them as a graph)."""
        message = {"op": "batch", "repeats": repeats, "capture": capture}
        return self.ask(message, CALL_S, Stage.PERFORMANCE)

    def record(self) -> tuple[dict[str, Any], list[int]]:
        """Ask for the kernel launches of one forward on set 0.

        Returns:
            The answer, and the descriptors that came with it, the caller's to close.
        """
        return self._exchange({"op": "record", "set": 0}, CALL_S, Stage.PERFORMANCE)

    def check_alone(self, what: str, stage: Stage = Stage.CORRECTNESS) -> None:
        """Refuse processes that live on beside the candidate's own once `what` is done.

        Raises:
            Failed: some do; they could do its work where nobody looks.
        """
        if left := self.child.left_running():
            text = f"{what} left processes running ({left}); start none that outlive it"
            raise Failed(Status.REWARD_HACK, stage, Evidence(kind="processes", message=text))

    def close(self) -> None:
        """End the candidate's process and everything below it."""
        self.child.close()

    def ask(
        self, message: dict[str, Any], timeout_s: float, stage: Stage, *, fds: Sequence[int] = ()
    ) -> dict[str, Any]:
        """Send one request; whatever goes wrong is the untrusted process's failure.

        Args:
            message: the request.
            timeout_s: for its answer.
            stage: where a failure belongs.
            fds: open descriptors that go with it.

        Raises:
            Failed: it answered with an error, ended, or did not answer in time.
        """
        answer, came = self._exchange(message, timeout_s, stage, fds)
        _close_all(came)  # nobody asked for descriptors
        return answer

    def _exchange(
        self, message: dict[str, Any], timeout_s: float, stage: Stage, fds: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        limit_s = self.patience.limit_s(timeout_s)
        if not limit_s:
            raise self._too_slow(stage, "its answers together took too long")
        try:
            with self.patience.waiting():
                answer, came = self.child.exchange(message, limit_s, fds)
        except ChildTimeout:
            text = f"no answer to `{message['op']}` within {limit_s:.0f} s; it was killed"
            raise self._too_slow(stage, text) from None
        except ChildDied as exc:
            raise Failed(Status.RUNTIME_ERROR, stage, self._death(exc)) from None
        if "error" in answer:
            _close_all(came)
            raise failure_of(answer["error"], stage, device=self.device)
        patched = self._read(lambda: claims.patched(answer), stage)
        if patched:
            _close_all(came)
            text = f"functions that are not the candidate's were replaced: {', '.join(patched)}"
            raise Failed(Status.REWARD_HACK, stage, Evidence(kind="patched", message=text))
        return answer, came

    def _read(self, claim: Callable[[], T], stage: Stage) -> T:
        try:
            return claim()
        except claims.MalformedAnswer as exc:
            evidence = Evidence(kind="protocol", message=f"the candidate's process answered: {exc}")
            raise Failed(Status.RUNTIME_ERROR, stage, evidence) from None

    def _too_slow(self, stage: Stage, text: str) -> Failed:
        kind = "timeout_gpu" if self.device == "cuda" else "timeout_host"
        return Failed(Status.TIMEOUT, stage, Evidence(kind=kind, message=text))

    def _death(self, exc: ChildDied) -> Evidence:
        log = self.child.output.text()
        if self.child.output.over_limit:
            return Evidence(kind="output_limit", message=str(exc), details={"log": log[-4000:]})
        how = exc.exit.describe() if exc.exit else "ended"
        kind = "crash"
        if exc.exit is not None and exc.exit.signal == signal.SIGSYS:
            kind = "policy_violation"
        return Evidence(
            kind=kind, message=f"the candidate's process {how}", details={"log": log[-4000:]}
        )


def _close_all(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def failure_of(error: Any, stage: Stage, *, device: str) -> Failed:
    """Turn an error reported by an untrusted child into a `Failed`.

    The text is the child's own; the class of the failure follows from where it happened and from
    the exception's type, never from words in its message.
    """
    if not isinstance(error, dict):
        error = {"message": "an error that is no object"}
    kind, message = told.kind_of(error), told.words(str(error.get("message", ""))[:2000])
    trace = told.words(str(error.get("traceback", ""))[-6000:])
    if kind == "needs_gpu" and device == "cpu":
        return needs_gpu(message, trace)
    status = Status.RUNTIME_ERROR
    if kind == "compile_error":
        status, stage = Status.COMPILE_ERROR, Stage.COMPILE
    text = f"{told.name(error['type'])}: {message}" if "type" in error else message
    details: dict[str, Any] = {"traceback": trace}
    if isinstance(error.get("line"), int):
        details["line"] = error["line"]
    if error.get("kernel"):
        details["kernel"] = told.name(error["kernel"])
    return Failed(status, stage, Evidence(kind=kind, message=text[:2000], details=details))


def needs_gpu(what: str, trace: str = "") -> Failed:
    """Return the outcome of a candidate that this machine can compile but not run."""
    text = f"compiled, not run: {what}"[:2000]
    details = {"traceback": trace} if trace else {}
    evidence = Evidence(kind="needs_gpu", message=text, details=details)
    return Failed(Status.COMPILED_ONLY, Stage.COMPILE, evidence)
