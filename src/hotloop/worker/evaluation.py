"""One evaluation: a fresh candidate process on an arena, and what the judge asks of it.

The candidate's answers are claims. This file turns its failures into verdict evidence; the stages
(`correctness.py`, `performance.py`) look at the arena.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from hotloop.core.candidate import Candidate
from hotloop.core.record import to_json
from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.arena import Arena, Layout, Slot
from hotloop.worker.arguments import encode_args
from hotloop.worker.children import Child, ChildDied, ChildTimeout
from hotloop.worker.poison import fill
from hotloop.worker.reference import Draw, Reference
from hotloop.worker.workroom import Workroom

LOAD_S = 120.0
CALL_S = 60.0
MAX_SETS = 16
SETS_BYTES = 1 << 30
"""More than two sets only while they fit in this: short kernels need many distinct buffers."""


class Failed(Exception):
    """The candidate failed: how, at which stage, with what evidence. Data, no error of ours."""

    def __init__(self, status: Status, stage: Stage, evidence: Evidence) -> None:
        super().__init__(evidence.message)
        self.status = status
        self.stage = stage
        self.evidence = evidence


@dataclass(slots=True)
class Board:
    """The arena of one problem: where inputs, outputs and state lie."""

    arena: Arena
    layout: Layout
    state: dict[str, Slot]
    sets: list[tuple[list[Any], list[Slot]]]
    """Per set: inputs (a Slot, or a plain value) and outputs."""
    reserve_bytes: int

    @classmethod
    def build(cls, reference: Reference, draw: Draw, outputs: Sequence[torch.Tensor]) -> Board:
        """Lay out and allocate the arena for a draw and its outputs.

        Raises:
            MemoryError: it does not fit on the device.
        """
        layout = Layout()
        state = {name: layout.place_like(t) for name, t in draw.state.items()}
        before = layout.size_bytes
        sets = [_place_set(layout, draw, outputs)]
        set_bytes = layout.size_bytes - before
        for _ in range(max(1, min(MAX_SETS, SETS_BYTES // max(set_bytes, 1)) - 1)):
            sets.append(_place_set(layout, draw, outputs))
        device = reference.loaded.device
        reserve = 0 if device == "cpu" else min(4 * set_bytes, 8 << 30)
        arena = Arena.create(device, layout.size_bytes)
        arena.fill_gaps(layout)
        return cls(arena, layout, state, sets, reserve)

    def write_state(self, draw: Draw) -> None:
        """Copy a draw's parameters and buffers into the arena."""
        for name, slot in self.state.items():
            self.arena.view(slot).copy_(draw.state[name])

    def write_inputs(self, index: int, draw: Draw) -> None:
        """Copy a draw's inputs into set `index` and poison that set's outputs."""
        inputs, outputs = self.sets[index]
        for slot, value in zip(inputs, draw.inputs, strict=True):
            if isinstance(slot, Slot):
                self.arena.view(slot).copy_(value)
        for slot in outputs:
            fill(self.arena.view(slot))

    def inputs_unchanged(self, index: int, draw: Draw) -> bool:
        """Whether set `index` still holds the draw's inputs, bit for bit."""
        inputs, _ = self.sets[index]
        return all(
            _same_bits(self.arena.view(slot), value)
            for slot, value in zip(inputs, draw.inputs, strict=True)
            if isinstance(slot, Slot)
        )

    def state_unchanged(self, draw: Draw) -> bool:
        """Whether the parameters still are the draw's, bit for bit."""
        return all(_same_bits(self.arena.view(s), draw.state[n]) for n, s in self.state.items())

    def outputs(self, index: int) -> list[torch.Tensor]:
        """Return the output buffers of set `index`; they share the arena's memory."""
        return [self.arena.view(slot) for slot in self.sets[index][1]]


def _place_set(
    layout: Layout, draw: Draw, outputs: Sequence[torch.Tensor]
) -> tuple[list[Any], list[Slot]]:
    inputs = [layout.place_like(v) if isinstance(v, torch.Tensor) else v for v in draw.inputs]
    places = [layout.place(t.shape, t.contiguous().stride(), t.dtype) for t in outputs]
    return inputs, places


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype.is_floating_point:
        width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
        a, b = a.contiguous().view(width), b.contiguous().view(width)
    return torch.equal(a, b)


@dataclass(slots=True)
class Evaluation:
    """A candidate process and the board it works on."""

    child: Child
    board: Board
    candidate: Candidate
    device: str
    prepare_ms: list[float] = field(default_factory=list)

    @classmethod
    def start(
        cls, room: Workroom, board: Board, candidate: Candidate, folder: Path
    ) -> Evaluation:
        """Fork the candidate's process; nothing of it has run yet."""
        child = room.start_candidate(folder, board.arena.fd)
        return cls(child, board, candidate, room.device)

    def load(self, init_args: Sequence[Any]) -> None:
        """Load the candidate and bind the state.

        Raises:
            Failed: it cannot be loaded.
        """
        message = {
            "op": "load",
            "device": self.device,
            "arena": self.board.arena.token,
            "sources": to_json(self.candidate.sources),
            "entry": self.candidate.entry,
            "pins": to_json(self.candidate.pins),
            "init_args": [encode_args(a) for a in init_args],
            "state": {n: s.to_json() for n, s in self.board.state.items()},
            "sets": [self.describe_set(*s) for s in self.board.sets],
            "reserve_bytes": self.board.reserve_bytes,
        }
        answer = self.ask(message, LOAD_S, Stage.CORRECTNESS)
        self.prepare_ms.append(float(answer["prepare_ms"]))

    def prepare(self) -> None:
        """Tell the candidate that its parameters and buffers changed."""
        answer = self.ask({"op": "prepare"}, CALL_S, Stage.CORRECTNESS)
        self.prepare_ms.append(float(answer["prepare_ms"]))

    def call(
        self, index: int, *, timed: bool, stage: Stage, timeout_s: float = CALL_S
    ) -> dict[str, Any]:
        """Run one forward on set `index`."""
        return self.ask({"op": "call", "set": index, "timed": timed}, timeout_s, stage)

    def batch(self, *, repeats: int = 1, capture: bool = False) -> dict[str, Any]:
        """Run all sets `repeats` times (or capture them as a graph)."""
        message = {"op": "batch", "repeats": repeats, "capture": capture}
        return self.ask(message, CALL_S, Stage.PERFORMANCE)

    def record(self) -> dict[str, Any]:
        """Ask for the kernel launches of one forward on set 0."""
        return self.ask({"op": "record", "set": 0}, CALL_S, Stage.PERFORMANCE)

    def close(self) -> None:
        """End the candidate's process and everything below it."""
        self.child.close()

    @staticmethod
    def describe_set(inputs: list[Any], outputs: list[Slot]) -> dict[str, Any]:
        """Return where one call's inputs and outputs lie, as JSON values."""
        return {
            "inputs": [
                {"slot": v.to_json()} if isinstance(v, Slot) else {"value": encode_args(v)}
                for v in inputs
            ],
            "outputs": [s.to_json() for s in outputs],
        }

    def ask(self, message: dict[str, Any], timeout_s: float, stage: Stage) -> dict[str, Any]:
        """Send one request; whatever goes wrong is the untrusted process's failure.

        Raises:
            Failed: it answered with an error, ended, or did not answer in time.
        """
        try:
            answer = self.child.request(message, timeout_s)
        except ChildTimeout:
            kind = "timeout_gpu" if self.device == "cuda" else "timeout_host"
            text = f"no answer to `{message['op']}` within {timeout_s:.0f} s; it was killed"
            raise Failed(Status.TIMEOUT, stage, Evidence(kind=kind, message=text)) from None
        except ChildDied as exc:
            raise Failed(Status.RUNTIME_ERROR, stage, self._death(exc)) from None
        if "error" in answer:
            raise failure_of(answer["error"], stage, device=self.device)
        return answer

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


def failure_of(error: dict[str, Any], stage: Stage, *, device: str) -> Failed:
    """Turn an error reported by an untrusted child into a `Failed`.

    The text is the child's own; the class of the failure follows from where it happened and from
    the exception's type, never from words in its message.
    """
    kind, message = str(error.get("kind", "exception")), str(error.get("message", ""))
    if kind == "needs_gpu" and device == "cpu":
        return needs_gpu(message, str(error.get("traceback", ""))[-6000:])
    status = Status.RUNTIME_ERROR
    if kind == "compile_error":
        status, stage = Status.COMPILE_ERROR, Stage.COMPILE
    text = f"{error['type']}: {message}" if "type" in error else message
    details = {"traceback": str(error.get("traceback", ""))[-6000:]}
    if isinstance(error.get("line"), int):
        details["line"] = error["line"]
    return Failed(status, stage, Evidence(kind=kind, message=text[:2000], details=details))


def needs_gpu(what: str, trace: str = "") -> Failed:
    """Return the outcome of a candidate that this machine can compile but not run."""
    text = f"compiled, not run: {what}"[:2000]
    details = {"traceback": trace} if trace else {}
    evidence = Evidence(kind="needs_gpu", message=text, details=details)
    return Failed(Status.COMPILED_ONLY, Stage.COMPILE, evidence)
