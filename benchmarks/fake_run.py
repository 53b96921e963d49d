"""A small search on the fake machine: its problem, its paid endpoint, its command and its journal.

What crash tests and the random killer share. The endpoint answers by the prompt's digest, so that a
call that is sent again gets the same answer. Its kernels declare nothing to tune: a sweep runs
beside the next call, and whether that call's prompt tells of it is a matter of time.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.record import to_json
from hotloop.core.verdict import Status
from hotloop.store.reader import RunReader
from hotloop.store.rows import StoredEvent
from hotloop.testing.model_server import Asked, ModelServer, Turn

PROBLEM = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(8, 64)]


def get_init_inputs():
    return []
"""
KERNEL = """\
import torch
import triton
import triton.language as tl

BLOCK = 128


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, tl.maximum(x, 0.0) * {factor}, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
        return y
"""
CALLS = 5


class DigestServer(ModelServer):
    """Answers each prompt with a kernel of its own; the same one every time it is asked."""

    def take(self, asked: Asked) -> Turn:
        """Keep a request and return its answer; one in four has no code in it."""
        super().take(asked)
        number = int(hashlib.sha256(json.dumps(asked.body).encode()).hexdigest()[:6], 16)
        code = f"```python\n{KERNEL.format(factor=number)}```\n"
        return Turn(text="I have no idea." if number % 4 == 0 else code, piece=200)


def command(folder: Path, url: str, *, calls: int = CALLS, parallel: int = 1) -> list[str]:
    """Write the problem beside the run's folder; return the arguments of the run."""
    (folder / "scaled_relu.py").write_text(PROBLEM, encoding="utf-8")
    words = f"optimize scaled_relu.py --model openai:some-model@{url} --judge ssh://nowhere"
    words += f" --device cuda --strategy hybrid --max-calls {calls} --parallel {parallel}"
    return [*words.split(), "--budget", "10m", "--out", "run"]


TIMES = {"started_s", "finished_s", "call_s", "seconds"}
"""Fields that differ from run to run."""
MARKS = {"uncertain", "notes"}
"""Fields that say that a call may have been paid twice: a run that was killed has them."""
COMPARED = {"begun", "proposed", "concluded", "final", "call_intent", "call_response"}
"""Kinds of events that a run that was killed has as the control run has them."""
ACKNOWLEDGED = {
    "after-propose": "proposed",
    "after-intent": "call_intent",
    "after-response": "call_response",
    "after-lease": "leased",
    "after-result": "judged",
    "after-verdict": "concluded",
    "after-final": "final",
}
"""Points at which an event of a kind is on disk for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """What a run's journal says."""

    attempts: list[Any]
    events: set[str]
    """The events of the kinds of `COMPARED`, without times, each once."""
    kinds: Counter[str]
    """How many events there are of each kind."""
    stop: str | None
    spent_s: float
    set_apart: int
    """Candidates that the machine failed at three times."""
    given_up: int
    """Calls that were sent twice and killed twice: they are not sent a third time."""


def journal_of(run: Path) -> Journal:
    """Return what a run's journal says; every candidate in it is read and checked."""
    with RunReader(run) as reader:
        attempts = reader.attempts()
        for attempt in attempts:
            if attempt.candidate_id is not None:
                reader.candidate(attempt.candidate_id)
        events = reader.events()
        stops = [event.payload["reason"] for event in events if event.kind == "stopped"]
        return Journal(
            attempts=[_plain(to_json(attempt)) for attempt in attempts],
            events={_line(event) for event in events if event.kind in COMPARED},
            kinds=Counter(event.kind for event in events),
            stop=stops[-1] if stops else None,
            spent_s=reader.spent_s(),
            set_apart=sum(
                attempt.verdict is not None and attempt.verdict.status is Status.INCONCLUSIVE
                for attempt in attempts
            ),
            given_up=_given_up(events),
        )


def _given_up(events: Sequence[StoredEvent]) -> int:
    unanswered: Counter[str] = Counter()
    for event in events:
        if event.kind in ("call_intent", "call_response", "call_failed"):
            call = json.dumps([event.payload["key"], event.payload["prompt_id"]])
            unanswered[call] += 1 if event.kind == "call_intent" else -1
    return sum(count >= 2 for count in unanswered.values())


def _line(event: StoredEvent) -> str:
    return f"{event.kind} {json.dumps(_plain(event.payload), sort_keys=True)}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if k not in TIMES | MARKS}
    return [_plain(item) for item in value] if isinstance(value, list) else value
