"""Builds: candidates compiled ahead in lanes, while the GPU is busy with another one.

One lane is one caged process without a GPU. Its result stays here, with the candidate's folder and
compiler cache, until the candidate is verified and discarded.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop import errors
from hotloop.core.candidate import Candidate
from hotloop.core.language import GLUON, LANGUAGES
from hotloop.core.record import to_json
from hotloop.core.verdict import Evidence, KernelResources, Stage, Status
from hotloop.errors import InfraError
from hotloop.sandbox import OutputCollector
from hotloop.worker import claims, told
from hotloop.worker.arguments import encode_args
from hotloop.worker.assembler_advice import MAX_ADVICE, MAX_CHARS
from hotloop.worker.children import ChildDied, ChildTimeout
from hotloop.worker.crash_words import last_words
from hotloop.worker.dialect import wrong_dialect
from hotloop.worker.evaluation import Failed, failure_of, needs_gpu
from hotloop.worker.workroom import Workroom

BUILD_S = 90.0
"""Triton needs 1 to 10 s, `load_inline` with torch headers about a minute."""
_FAULTS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
"""How native code ends that goes wrong."""
_NOT_TO_BLAME = {
    "data_dependent": "reads values",
    "in_library": "was not followed to its end without one",
}
"""By kind (`unfollowed.py`): what a forward does that cannot be followed, and may well run."""


@dataclass(frozen=True, slots=True)
class Build:
    """The outcome of one lane."""

    folder: Path
    resources: tuple[KernelResources, ...]
    failure: Failed | None
    seconds: float
    unfollowed: Mapping[str, Any] | None = None
    """Why the forward could not be followed to its end on tensors without data: `kind`, `type`,
    `message`, `traceback`; None where it could, or nobody tried."""

    def unrun(self, language: str) -> Failed:
        """Return the outcome where this machine can compile the candidate but not run it.

        COMPILED_ONLY, unless the forward of a Gluon candidate, which is compiled by following it,
        ended in an error of its own on tensors without data: then not all of its kernels were seen.
        """
        name = LANGUAGES[language].title if language in LANGUAGES else language
        why = self.unfollowed
        if language != GLUON.name or why is None:
            return needs_gpu(f"{name} needs a GPU; verify it on one")
        trace = told.words(str(why.get("traceback", ""))[-6000:])
        said = f"{told.name(why.get('type'))}: {told.words(why.get('message'))}"[:1000]
        reason = _NOT_TO_BLAME.get(str(why.get("kind")))
        if reason is not None:
            text = f"{name} needs a GPU, and forward {reason} ({said}), so that not all of its "
            return needs_gpu(f"{text}kernels could be compiled here; verify it on a GPU", trace)
        text = f"forward, followed on tensors without data, failed: {said}"
        evidence = Evidence(kind="exception", message=text, details={"traceback": trace})
        return Failed(Status.RUNTIME_ERROR, Stage.COMPILE, evidence)


class Builds:
    """Runs lanes and keeps their results. Thread-safe; each candidate is built once."""

    def __init__(self, room: Workroom, signature: Mapping[str, Any]) -> None:
        self._room = room
        self._signature = signature
        """`init_args`, `inputs`, `state`: what a lane needs to run the forward on fake tensors."""
        self._lock = threading.Lock()
        self._done: dict[str, Build] = {}
        self._running: dict[str, threading.Event] = {}

    def get(self, candidate: Candidate) -> Build:
        """Return the build of a candidate; build it now if nobody has, wait if somebody is.

        Raises:
            InfraError: the machine is at fault.
        """
        while True:
            with self._lock:
                if candidate.id in self._done:
                    return self._done[candidate.id]
                waiting = self._running.get(candidate.id)
                if waiting is None:
                    mine = self._running[candidate.id] = threading.Event()
                    break
            waiting.wait()
        try:
            build = self._build(candidate)
            with self._lock:
                self._done[candidate.id] = build
            return build
        finally:
            with self._lock:
                del self._running[candidate.id]
            mine.set()

    def discard(self, candidate_id: str) -> None:
        """Forget a build and remove its folder."""
        with self._lock:
            build = self._done.pop(candidate_id, None)
        if build is not None:
            self._room.discard(build.folder)

    def _build(self, candidate: Candidate) -> Build:
        start = time.monotonic()
        folder = self._room.folder(candidate.id)
        failure, answer = None, {}
        resources: tuple[KernelResources, ...] = ()
        try:
            answer = self._run_lane(candidate, folder)
            resources = _kernels(answer)
        except Failed as exc:
            failure = exc
        except BaseException:
            self._room.discard(folder)
            raise
        needs = answer.get("needs_gpu")
        unfollowed = needs if isinstance(needs, dict) else None
        if failure is None:
            compiled = claims.objects(answer, "kernels")
            followed = unfollowed is None
            failure = wrong_dialect(candidate.language, compiled, is_followed=followed)
        return Build(folder, resources, failure, time.monotonic() - start, unfollowed)

    def _run_lane(self, candidate: Candidate, folder: Path) -> dict[str, Any]:
        child = self._room.start_lane(folder)
        message = {
            "op": "build",
            "language": candidate.language,
            "sources": to_json(candidate.sources),
            "entry": candidate.entry,
            "pins": to_json(candidate.pins),
            **self._signature,
        }
        try:
            answer = child.request(message, BUILD_S)
        except ChildTimeout:
            text = f"the build took over {BUILD_S:.0f} s and was killed"
            raise Failed(
                Status.TIMEOUT, Stage.COMPILE, Evidence(kind="timeout_host", message=text)
            ) from None
        except ChildDied as exc:
            raise _lane_end(exc, child.output, candidate.entry) from None
        finally:
            child.close()
        if "infra" in answer:
            raise _machine_fault(answer)
        if "error" in answer:
            failed = failure_of(answer["error"], Stage.COMPILE, device=self._room.device)
            raise Failed(Status.COMPILE_ERROR, Stage.COMPILE, failed.evidence)
        return answer


def _kernels(answer: Mapping[str, Any]) -> tuple[KernelResources, ...]:
    try:
        return tuple(_resources(k) for k in claims.objects(answer, "kernels"))
    except claims.MalformedAnswer as exc:
        evidence = Evidence(kind="protocol", message=f"the compile lane answered: {exc}")
        raise Failed(Status.COMPILE_ERROR, Stage.COMPILE, evidence) from None


def _machine_fault(answer: Mapping[str, Any]) -> InfraError:
    """Return the error that a lane named; one that is no machine's fault is not believed."""
    named = getattr(errors, str(answer["infra"]), InfraError)
    known = isinstance(named, type) and issubclass(named, InfraError)
    return (named if known else InfraError)(str(answer.get("message", ""))[:1000])


def _lane_end(exc: ChildDied, output: OutputCollector, entry: str) -> Failed:
    """Tell how a lane ended: by its compiler, or by what a Python file's own code did in it.

    A compiler that gives up says so or faults. What exits, is killed or floods the log without a
    word of it need not be the compiler.
    """
    log, end = output.text(), exc.exit
    said, how = last_words(log), end.describe() if end else "ended"
    details = {"log": log[-4000:]}
    if said or entry.endswith(".cu") or (end is not None and end.signal in _FAULTS):
        message = f"the compiler's process {how}" + (f" after it said:\n{said}" if said else "")
        evidence = Evidence(kind="compiler_crash", message=message, details=details)
        return Failed(Status.COMPILE_ERROR, Stage.COMPILE, evidence)
    what = "while forward was followed to compile its kernels"
    kind, text = "crash", f"the process {how} {what}"
    if output.over_limit:
        kind, text = "output_limit", f"more output than is allowed {what}"
    elif end is not None and end.signal == signal.SIGSYS:
        kind = "policy_violation"
    evidence = Evidence(kind=kind, message=text, details=details)
    return Failed(Status.RUNTIME_ERROR, Stage.COMPILE, evidence)


def _resources(data: Mapping[str, Any]) -> KernelResources:
    def number(key: str) -> int | None:
        value = claims.number_or_none(data, key)
        return None if value is None else int(value)

    return KernelResources(
        name=told.name(data.get("name", "kernel"), 200),
        registers=number("registers"),
        spill_bytes=number("spill_bytes"),
        shared_bytes=number("shared_bytes"),
        num_warps=number("num_warps"),
        num_stages=number("num_stages"),
        advice=tuple(str(text)[:MAX_CHARS] for text in _listed(data, "advice")[:MAX_ADVICE]),
        cubin_sha256=str(data["cubin_sha256"])[:64] if data.get("cubin_sha256") else None,
        compile_s=claims.number_or_none(data, "compile_s"),
    )


def _listed(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def signature_of(
    init_args: Sequence[Any], inputs: Sequence[Any], state: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe a problem's constructor arguments, inputs and state for a lane, without values.

    Args:
        init_args: constructor arguments.
        inputs: forward's arguments; tensors become shape, strides and dtype.
        state: parameters and buffers by the reference's names.
    """
    return {
        "init_args": [encode_args(a) for a in init_args],
        "inputs": [_describe(v) for v in inputs],
        "state": {name: _describe(t) for name, t in state.items()},
    }


def _describe(value: Any) -> dict[str, Any]:
    if not hasattr(value, "stride"):
        return {"value": encode_args(value)}
    return {
        "shape": list(value.shape),
        "strides": list(value.stride()),
        "dtype": str(value.dtype).removeprefix("torch."),
    }
