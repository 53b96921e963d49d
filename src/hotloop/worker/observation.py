"""Observation: forwards of a candidate under watch, in its own process. Untrusted code runs here.

    hold     a call as always, but its outputs are kept               -> {"launches"}
    watch    a call on another set; torch's own work is noted         -> what `Observed` reads
    recopy   the outputs that were kept, copied out once more         -> {}
    ghost    a call without any of its launches                       -> {"launches"}

The judge says which, and looks at its own buffers (`conduct.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from hotloop.worker.census import ARITHMETIC
from hotloop.worker.host_reads import HostReads
from hotloop.worker.launches import Launches
from hotloop.worker.library_calls import LibraryCalls
from hotloop.worker.state_guard import StateGuard


class Observation:
    """Serves `observe` requests of one candidate."""

    def __init__(self, launches: Launches, forward: Callable[[int], list[torch.Tensor]]) -> None:
        self._launches = launches
        self._forward = forward
        self._guard = StateGuard()
        self._held: list[torch.Tensor] = []

    def run(
        self, step: str, index: int, shared: range
    ) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Return the outputs to copy out, and what was seen.

        Args:
            step: `hold`, `watch`, `recopy` or `ghost`.
            index: set whose inputs the call takes.
            shared: addresses of the judge's memory.
        """
        if step == "recopy":
            held, self._held = self._held, []
            return held, {}
        if step == "watch":
            return self._watch(index, shared)
        with self._launches.watched(left_out=step == "ghost"):
            outputs = self._forward(index)
        if step == "hold":
            self._held = outputs
        return outputs, {"launches": self._launches.count}

    def _watch(self, index: int, shared: range) -> tuple[list[torch.Tensor], dict[str, Any]]:
        calls = LibraryCalls(self._held, shared)
        reads = HostReads(lambda: calls.is_in_kernel)
        with ExitStack() as stack:
            stack.enter_context(reads)
            stack.enter_context(self._launches.watched(watcher=calls.before_launch))
            stack.enter_context(calls)
            outputs = self._forward(index)
        # Arithmetic beside the work (a check, a print) is nobody's substitute for a kernel.
        whole = {n: size for n, size in calls.largest.items() if n not in ARITHMETIC}
        done = {**whole, **calls.used(outputs), **reads.read}
        seen = {
            "launches": self._launches.count,
            "operations": [{"name": n, "numel": size} for n, size in done.items()],
            "from_kernels": sum(calls.is_from_kernels(t) for t in outputs),
            "answers": [{"name": n, "output": i} for n, i in calls.answers(outputs)],
        }
        return outputs, {**seen, **self._guard.describe()}
