"""Answers of an untrusted process, read as claims: the right types and finite numbers, or none.

A candidate runs in the process that answers, so an answer may hold anything that JSON can. What is
malformed is that process's failure (`evaluation.py` says so), never an exception of the judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.worker import told

TIMERS = ("cupti", "cuda_event")


class MalformedAnswer(Exception):  # noqa: N818  no error of ours: what came is no answer
    """An answer lacks a field, or the field is of another kind; the message says which."""


@dataclass(frozen=True, slots=True)
class TimedCall:
    """What a process says of one timed call."""

    elapsed_ms: float
    timer: str
    kernels: tuple[str, ...]
    """Names of the device's activities."""
    peak_memory_bytes: int

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> TimedCall:
        """Read an answer to a timed `call`.

        Raises:
            MalformedAnswer: it is none.
        """
        timer, kernels = answer.get("timer"), answer.get("kernels")
        if timer not in TIMERS or not isinstance(kernels, list):
            raise MalformedAnswer(f"expected a timer of {TIMERS} and a list of kernels")
        names = tuple(told.name(k) for k in kernels)
        peak_bytes = int(number(answer, "peak_memory_bytes"))
        return cls(number(answer, "elapsed_ms"), timer, names, peak_bytes)


@dataclass(frozen=True, slots=True)
class Observed:
    """What a process says of an untimed forward (`observation.py`)."""

    launches: int
    operations: Mapping[str, int]
    """Operation of torch with arithmetic -> elements that its calls touched."""
    on_values: Mapping[str, int]
    """Those of them that took values of the call's tensors or of kernels."""
    applied: int
    """Elements of all those values."""
    answers: tuple[tuple[str, int], ...]
    """(operation, output) where torch alone computed the output's values."""
    moved: tuple[tuple[str, int], ...]
    """(operation, output) where torch alone put the output's values in their places."""
    kept: tuple[int, ...]
    """Outputs in memory from before the call, which the call wrote."""
    lazy: tuple[tuple[str, int], ...]
    """(`expanded` or `strided`, output) where values do not lie one after the other."""
    hidden: int
    """Elements that torch worked on while it was kept from telling."""
    started: int
    """Threads and processes that began in the forward, also those that ended in it."""
    from_kernels: int
    """Outputs that a kernel wrote, or something that they were made from."""
    python_threads: int
    tasks: int
    """Threads of any kind beyond those before the candidate was loaded."""

    @classmethod
    def read(cls, answer: Mapping[str, Any]) -> Observed:
        """Read an answer to an untimed `call`.

        Raises:
            MalformedAnswer: it is none.
        """
        return cls(
            launches=int(number(answer, "launches")),
            operations=_sizes(answer, "operations"),
            on_values=_sizes(answer, "on_values"),
            applied=int(number(answer, "applied")),
            answers=_named(answer, "answers"),
            moved=_named(answer, "moved"),
            kept=tuple(int(number(row, "output")) for row in objects(answer, "kept")),
            lazy=_named(answer, "lazy"),
            hidden=sum(int(number(row, "numel")) for row in objects(answer, "hidden")),
            started=int(number(answer, "started")),
            from_kernels=int(number(answer, "from_kernels")),
            python_threads=int(number(answer, "python_threads")),
            tasks=int(number(answer, "tasks")),
        )


def _sizes(answer: Mapping[str, Any], key: str) -> dict[str, int]:
    return {told.name(row.get("name")): int(number(row, "numel")) for row in objects(answer, key)}


def _named(answer: Mapping[str, Any], key: str) -> tuple[tuple[str, int], ...]:
    return tuple(
        (told.name(row.get("name")), int(number(row, "output"))) for row in objects(answer, key)
    )


def patched(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the functions of torch and of ours that are not what they were before the candidate.

    Raises:
        MalformedAnswer: the answer has something else in their place.
    """
    names = answer.get("patched", [])
    if not isinstance(names, list):
        raise MalformedAnswer("expected a list of names for 'patched'")
    return tuple(told.name(name) for name in names)


def number(answer: Mapping[str, Any], key: str) -> float:
    """Return a finite number of an answer.

    Raises:
        MalformedAnswer: there is none.
    """
    value = answer.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MalformedAnswer(f"expected a number for {key!r}, got {type(value).__name__}")
    if abs(value) > 1e18 or math.isnan(value):
        raise MalformedAnswer(f"expected a finite number for {key!r}, got {value!r:.40}")
    return float(value)


def number_or_none(answer: Mapping[str, Any], key: str) -> float | None:
    """Return a finite number of an answer, None where it has none."""
    try:
        return number(answer, key)
    except MalformedAnswer:
        return None


def objects(answer: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return a list of JSON objects of an answer; a missing one is empty.

    Raises:
        MalformedAnswer: it is something else.
    """
    value = answer.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise MalformedAnswer(f"expected a list of objects for {key!r}")
    return value
