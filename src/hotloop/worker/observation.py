"""Observation: forwards of a candidate under watch, in its own process. Untrusted code runs here.

Every untimed forward is watched, and all alike: the same modes, the same frames, the same notes. A
forward that could tell the call that counts from the others would do its work in that one only.

    call     a forward; torch's own work is noted, launches too     -> what `Observed` reads
    keep     hold on to the outputs of the call before              -> {}
    recopy   the outputs that were kept, to be copied out once more -> {}
    drop     let go of them                                         -> {}

The judge looks at its own buffers (`call_rules.py`, `conduct.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch

from hotloop.worker.census import LIBRARY_PRODUCTS, WHOLE_LAYERS
from hotloop.worker.dispatch_witness import DispatchWitness, ours
from hotloop.worker.frame_reads import FrameReads
from hotloop.worker.host_reads import HostReads, wrap_capsules
from hotloop.worker.launches import Launches, Watcher
from hotloop.worker.library_calls import LibraryCalls
from hotloop.worker.own_operators import known_operators
from hotloop.worker.starts import Starts
from hotloop.worker.state_guard import StateGuard


class Observation:
    """Watches the forwards of one candidate."""

    def __init__(
        self,
        launches: Launches,
        forward: Callable[[int], list[torch.Tensor]],
        witness: DispatchWitness,
        *,
        starts: Starts,
    ) -> None:
        """Stand ready before the candidate is loaded; `forward` runs under the witness."""
        self._witness = witness
        self._launches = launches
        self._forward = forward
        wrap_capsules()
        self._known = known_operators()
        frames = FrameReads()
        self.refuse_frames = frames.install
        """To be called before the candidate is loaded: no frames for it, from then on."""
        self._guard = StateGuard(frames)
        self.patched = self._guard.patched
        """Entry points that are not what they were; bound before the candidate is loaded."""
        self._starts = starts
        starts.install()
        self.slots: Mapping[int, torch.Tensor] = {}
        """The judge's tensors, by their addresses in its memory."""
        self._last: list[torch.Tensor] = []
        self._kept: list[torch.Tensor] = []

    def step(self, name: str) -> list[torch.Tensor]:
        """Do `keep`, `recopy` or `drop`; return the outputs to copy out."""
        self._kept, before = self._last if name == "keep" else [], self._kept
        self._last = []
        return before if name == "recopy" else []

    def call(
        self,
        order: Mapping[str, Any],
        wanted: Sequence[torch.Tensor],
        shared: range,
        poison: Callable[[], None] = lambda: None,
    ) -> tuple[list[torch.Tensor], dict[str, Any]]:
        """Run a forward; return its outputs and what was seen.

        Args:
            order: `set`, whose inputs the call takes; `left_out`, whether launches do nothing;
                `looks`, whether values are compared to tell where outputs come from.
            wanted: tensors of the shapes and dtypes of its outputs.
            shared: addresses of the judge's memory.
            poison: fills free memory, that of the outputs before among it.
        """
        calls = LibraryCalls(wanted, shared, self._known)
        calls.looks, calls.look = order["looks"], self._guard.look
        calls.slots, calls.points = self.slots, lambda: self._launches.may_point
        reads = HostReads(lambda: calls.is_in_kernel or calls.is_noting)
        begun = self._starts.count
        watcher = _uncounted(reads.apart_from(calls.before_launch))
        watched = self._launches.watched(left_out=order["left_out"], watcher=watcher)
        with ExitStack() as stack:
            for watch in (reads, watched, calls):
                stack.enter_context(watch)
            ended = self._end_last()
            poison()
            self._last = outputs = self._forward(order["set"])
        # Arithmetic beside the work (a check, a print) is nobody's substitute for a kernel.
        always = LIBRARY_PRODUCTS | WHOLE_LAYERS
        whole = {n: size for n, size in calls.totals.items() if n in always}
        done = {**whole, **calls.used(outputs), **calls.host_reads, **reads.read}
        seen = {
            "launches": self._launches.count,
            "operations": [{"name": n, "numel": size} for n, size in done.items()],
            "hidden": [
                {"name": n, "numel": size}
                for hidden in (ended, self._witness.hidden, calls.in_kernels)
                for n, size in hidden.items()
            ],
            "on_values": [
                {"name": n, "numel": size} for n, size in calls.on_values(outputs).items()
            ],
            "applied": calls.values.applied,
            "work": self._witness.work,
            "started": self._starts.count - begun,
            "from_kernels": sum(calls.is_from_kernels(t) for t in outputs),
            "answers": [{"name": n, "output": i} for n, i in calls.answers(outputs)],
            "moved": [{"name": n, "output": i} for n, i in calls.moved(outputs)],
            "kept": [{"output": i} for i in calls.memory.kept(outputs)],
            "lazy": [
                {"name": "expanded" if _is_expanded(t) else "strided", "output": i}
                for i, t in enumerate(outputs)
                if not t.is_contiguous()
            ],
        }
        return outputs, {**seen, **self._guard.describe()}

    def _end_last(self) -> dict[str, int]:
        """Let go of the outputs before, under watch; return what was hidden meanwhile.

        What hangs on them ends with them, and its code runs where the next inputs are written.
        """
        with self._witness:
            self._last = []
        return self._witness.hidden


def _is_expanded(tensor: torch.Tensor) -> bool:
    """Whether elements share memory."""
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return any(size > 1 and step == 0 for size, step in pairs)


def _uncounted(watcher: Watcher) -> Watcher:
    """Return a watcher of launches whose own work on tensors is not counted."""

    def before(tensors: list[torch.Tensor]) -> Callable[[], None]:
        with ours():
            after = watcher(tensors)

        def then() -> None:
            with ours():
                after()

        return then

    return before
