"""What a run remembers for its next prompts: what was tried, failed and won, in words, counted.

Data in, a few lines out. The words of an idea are a model's own and are cut to one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from hotloop.prompts.untrusted import one_line

MAX_ENTRIES = 6
"""Of each result; the latest are kept."""
IDEA_CHARS = 200


class Result(StrEnum):
    """How an idea ended."""

    WON = "won"
    """Correct, and faster than the best before it."""
    SLOWER = "slower"
    """Correct, and not faster."""
    CORRECT = "correct"
    """Correct, on a machine where nothing is timed."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One idea that was tried."""

    idea: str
    result: Result
    told: str = ""
    """How it ended, in a few words: `0.61 ms`, `does not compile: ...`."""
    count: int = 1
    """How many attempts ended so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A run so far."""

    attempts: int = 0
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Attempts by the status of their verdict."""
    entries: tuple[Entry, ...] = ()
    """Oldest first."""
    asked: frozenset[str] = frozenset()
    """Keys of the moves that earlier prompts have asked for (`speed.Move`)."""
    best: str = ""
    """The best correct kernel so far, in a few words: `0.43 ms a call, 1.4x as fast as eager`."""

    def lines(self) -> list[str]:
        """Return the section's lines; empty when nothing was tried."""
        if not self.attempts:
            return []
        counts = sorted(self.statuses.items(), key=lambda item: (-item[1], item[0]))
        by_status = ", ".join(f"{count} {one_line(name, 40)}" for name, count in counts)
        lines = [
            f"{_counted(self.attempts, 'attempt')} so far" + (f": {by_status}." * bool(counts))
        ]
        if self.best:
            lines.append(f"best correct kernel so far: {one_line(self.best, 120)}")
        for result in Result:
            lines += self._of(result)
        return lines

    def _of(self, result: Result) -> list[str]:
        known = [entry for entry in self.entries if entry.result is result]
        shown = known[-MAX_ENTRIES:]
        lines = [_line(entry) for entry in shown]
        if len(known) > len(shown):
            lines.insert(0, f"{result.value}: {len(known) - len(shown)} earlier ones, not listed")
        return lines


def _line(entry: Entry) -> str:
    times = f" ({entry.count} times)" if entry.count > 1 else ""
    told = f" -> {one_line(entry.told, 120)}" if entry.told else ""
    return f"{entry.result.value}{times}: {one_line(entry.idea, IDEA_CHARS)}{told}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
