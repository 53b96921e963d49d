"""The candidate's process: runs untrusted code on request, in its cage.

It maps the judge's arena, loads the candidate, and serves one request at a time. Whatever it answers
is a claim: the judge looks at the arena. The shim around the candidate's code does what the protocol
wants at the same place in every phase: poison the free memory, call, copy the outputs in stream
order into the judge's buffers, wait for the device.

    load     sources, entry, pins, init args, slots      -> {"prepare_ms"}
    prepare  the state in the arena changed              -> {"prepare_ms"}
    call     one forward on set i, timed or not          -> {"outputs", "elapsed_ms", "kernels"}
    batch    all sets in a CUDA graph (or a loop), often -> {"graph"}
    record   one forward, its kernel launches            -> {"launches"}
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch

from hotloop.worker import poison
from hotloop.worker.arena import Arena, Slot
from hotloop.worker.channel import Channel, ChannelClosed
from hotloop.worker.module_host import (
    ContractError,
    HostedModel,
    flatten_outputs,
    host_model,
    import_file,
    user_traceback,
    write_sources,
)


def serve(channel: Channel, arena_fd: int | None) -> int:
    """Answer requests until the judge says `exit` or goes away. Returns the exit code."""
    host = _Host(arena_fd)
    while True:
        try:
            message, _ = channel.receive()
        except ChannelClosed:
            return 0
        if message["op"] == "exit":
            return 0
        try:
            answer = host.handle(message)
        except BaseException as exc:  # noqa: BLE001  untrusted code raises whatever it likes
            answer = {"error": describe_error(exc, os.getcwd())}
        channel.send(answer)


def describe_error(exc: BaseException, folder: str) -> dict[str, Any]:
    """Return an exception of untrusted code as data."""
    if isinstance(exc, torch.OutOfMemoryError):
        kind = "oom_gpu"
    elif isinstance(exc, torch.AcceleratorError):
        kind = "cuda_error"
    elif isinstance(exc, MemoryError):
        kind = "oom_host"
    elif isinstance(exc, ContractError):
        kind = "contract"
    elif type(exc).__module__.startswith("triton.") and "Compil" in type(exc).__name__:
        kind = "compile_error"
    elif type(exc).__name__ in ("OutOfResources", "PTXASError"):
        kind = "compile_error"
    else:
        kind = "exception"
    return {
        "kind": kind,
        "type": type(exc).__name__,
        "message": str(exc)[:4000],
        "traceback": user_traceback(exc, folder),
    }


class _Host:
    """The state of one candidate process."""

    def __init__(self, arena_fd: int | None) -> None:
        self._arena_fd = arena_fd
        self._arena: Arena | None = None
        self._hosted: HostedModel | None = None
        self._sets: list[dict[str, Any]] = []
        self._cuda = False
        self._clock: Any = None

    def handle(self, message: dict[str, Any]) -> dict[str, Any]:
        handlers = {
            "load": self._load,
            "prepare": self._prepare,
            "call": self._call,
            "batch": self._batch,
            "record": self._record,
        }
        return handlers[message["op"]](message)

    def _load(self, message: dict[str, Any]) -> dict[str, Any]:
        self._cuda = message["device"] == "cuda"
        if not self._cuda:
            from hotloop.worker import interpreter

            interpreter.install()
        self._arena = arena = Arena.open(message["arena"], self._arena_fd)
        folder = Path.cwd()
        write_sources(folder, message["sources"])
        with torch.no_grad():
            module = import_file(folder / message["entry"], message["pins"])
            self._hosted = host_model(module, decode_args(message["init_args"]), message["device"])
            state = {k: arena.view(Slot.from_json(s)) for k, s in message["state"].items()}
            self._hosted.bind(state)
            self._sets = [self._map_set(s) for s in message["sets"]]
            if self._cuda:
                self._clock = make_clock()
                poison.reserve(message["reserve_bytes"])
            return self._prepare(message)

    def _map_set(self, data: dict[str, Any]) -> dict[str, Any]:
        assert self._arena is not None
        view = self._arena.view
        inputs = [view(Slot.from_json(a["slot"])) if "slot" in a else decode_args([a["value"]])[0]
                  for a in data["inputs"]]
        return {"inputs": inputs, "outputs": [view(Slot.from_json(s)) for s in data["outputs"]]}

    def _prepare(self, _: dict[str, Any]) -> dict[str, Any]:
        assert self._hosted is not None
        self._sync()
        start = time.perf_counter()
        with torch.no_grad():
            self._hosted.prepare()
        self._sync()
        return {"prepare_ms": (time.perf_counter() - start) * 1e3}

    def _call(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._hosted is not None
        chosen = self._sets[message["set"]]
        if self._cuda:
            self._sync()
            poison.fill_free_blocks()
        timed = self._cuda and message["timed"]
        with torch.no_grad():
            if timed:
                result, span = self._clock.measure(
                    lambda: self._hosted.model(*chosen["inputs"])  # type: ignore[union-attr]
                )
            else:
                result = self._hosted.model(*chosen["inputs"])
        outputs = flatten_outputs(result)
        self._copy_out(outputs, chosen["outputs"])
        self._sync()
        answer: dict[str, Any] = {"outputs": [_describe(t) for t in outputs]}
        if timed:
            answer["elapsed_ms"] = span.elapsed_ms
            answer["kernels"] = list(span.kernels)
            answer["timer"] = span.timer
            answer["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
        return answer

    def _copy_out(self, outputs: list[torch.Tensor], slots: list[torch.Tensor]) -> None:
        # A wrong count, shape or dtype stays uncopied: the judge reads the description and the
        # poison in its own buffer.
        for output, slot in zip(outputs, slots, strict=False):
            if output.shape == slot.shape and output.dtype == slot.dtype:
                slot.copy_(output)

    def _batch(self, message: dict[str, Any]) -> dict[str, Any]:
        """Run every set `repeats` times, outputs copied within; the judge holds the clock."""
        assert self._hosted is not None
        if message.get("capture"):
            self._graph = self._capture() if self._cuda else None
            self._sync()
            return {"graph": self._graph is not None}
        for _ in range(message["repeats"]):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._run_all_sets()
        self._sync()
        return {"graph": self._graph is not None}

    def _run_all_sets(self) -> None:
        assert self._hosted is not None
        with torch.no_grad():
            for chosen in self._sets:
                outputs = flatten_outputs(self._hosted.model(*chosen["inputs"]))
                self._copy_out(outputs, chosen["outputs"])

    def _capture(self) -> Any:
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._run_all_sets()
        except Exception:  # noqa: BLE001  not every honest forward can be captured; the loop stands
            return None
        return graph

    def _record(self, message: dict[str, Any]) -> dict[str, Any]:
        from hotloop.worker import recorder

        assert self._hosted is not None
        assert self._arena is not None
        chosen = self._sets[message["set"]]
        with torch.no_grad():
            return recorder.record(
                lambda: flatten_outputs(self._hosted.model(*chosen["inputs"])),  # type: ignore[union-attr]
                arena=self._arena,
            )

    def _sync(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()


def make_clock() -> Any:
    """Return the best kernel clock of this process."""
    from hotloop.worker.clock import make_clock as make

    return make()


def _describe(tensor: torch.Tensor) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": tensor.device.type,
    }


def encode_args(values: Any) -> Any:
    """Encode constructor arguments (numbers, text, None, nested lists, tuples, dicts) as JSON.

    Raises:
        ContractError: an argument has no such form.
    """
    if isinstance(values, tuple):
        return {"tuple": [encode_args(v) for v in values]}
    if isinstance(values, list):
        return {"list": [encode_args(v) for v in values]}
    if isinstance(values, dict):
        return {"dict": [[k, encode_args(v)] for k, v in values.items()]}
    if isinstance(values, torch.dtype):
        return {"dtype": str(values).removeprefix("torch.")}
    if values is None or isinstance(values, (bool, int, float, str)):
        return {"value": values}
    raise ContractError(
        f"expected constructor arguments of plain values, got {type(values).__name__}"
    )


def decode_args(values: list[Any]) -> list[Any]:
    """Undo `encode_args` for each entry of a list."""
    return [_decode(v) for v in values]


def _decode(data: dict[str, Any]) -> Any:
    ((kind, value),) = data.items()
    if kind == "tuple":
        return tuple(_decode(v) for v in value)
    if kind == "list":
        return [_decode(v) for v in value]
    if kind == "dict":
        return {k: _decode(v) for k, v in value}
    if kind == "dtype":
        return getattr(torch, value)
    return value
