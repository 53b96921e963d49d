"""Conduct: how a candidate comes to its right results. Runs once a workload, after they were right.

Four more calls on one case (`observation.py` serves them):

    hold     launches no kernel at all                 -> no kernel does the work
    watch    other addresses, one element of each input changed: wrong values -> results do not
             follow the inputs; no output comes from a kernel, or torch alone computed one; an
             operation that the policy does not allow; threads, processes, patched functions
    recopy   the first call's outputs again: changed   -> calls share an output buffer
    ghost    no kernel runs: all outputs still right   -> kernels do not do the work; where it
             fails instead, forward needed what kernels write, and that is an answer, too

Values are judged by the gate, in the judge's own buffers. What is said of launches, operations and
threads is the candidate's process's claim: it catches what is plain, and a replay of the recorded
launches (final tier, `cuda`) settles it. Not covered: launches of C++ extensions (no `hold`, no
`ghost`); candidates in `.cu` files, which have no code around their kernels. What a guard cannot
tell here is left open and noted, and never counts against a candidate.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.sandbox.processes import descendants
from hotloop.worker import claims
from hotloop.worker.cases import CaseBook
from hotloop.worker.census import ARITHMETIC, LIBRARY_PRODUCTS, PRODUCTS, WHOLE_LAYERS
from hotloop.worker.changed_case import changed_case
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.host_reads import HOST_READS
from hotloop.worker.known_case import Known, size_bytes
from hotloop.worker.memory import leave_room
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.reference import Draw

PROFILES = ("normal", "shipped")
"""Preferred in this order: where parameters are constants, a kernel's part may change nothing."""
LARGE_BYTES = 1 << 30
"""Inputs and outputs of this size together may leave a second call no memory."""
GHOST_S = 10.0
"""A call without kernels; one that waits for what they should have written does not end."""
LARGE_SHARE = 0.5
"""An operation on a tensor of this share of the problem's largest is work, not preparation."""
SMALL_SHARE = 0.02
"""Below this share, torch may compute an output by itself: a mean beside a matrix, a count."""
CHANGED = (
    "after one element of each input was changed, the inputs were put elsewhere and fresh memory "
    "held numbers instead of NaN: results must follow from the inputs of their own call"
)
SHARED = "of a call once forward was called again: return memory of its own from each call"


def check_conduct(
    evaluation: Evaluation, book: CaseBook, timeout_s: float, checks: list[str]
) -> bool:
    """Look at how a candidate that was right on all cases of a book works.

    Args:
        evaluation: of the candidate.
        book: its cases.
        timeout_s: for one call.
        checks: gets the names of what was looked at and of what had to be left open, and
            `library_anchor` where a library product stands beside the kernels.

    Returns:
        Whether the process may still be used; a call without kernels may have broken it.

    Raises:
        Failed: it does not do the work, or not with its kernels.
    """
    if not evaluation.candidate.entry.endswith(".py") or not book.cases:
        return True
    conduct = _Conduct(evaluation, book, timeout_s, checks)
    conduct.check()
    return conduct.usable


class _Conduct:
    def __init__(
        self, evaluation: Evaluation, book: CaseBook, timeout_s: float, checks: list[str]
    ) -> None:
        self._evaluation = evaluation
        self._book = book
        self._timeout_s = timeout_s
        self._checks = checks
        self._sees_launches = evaluation.candidate.language != "cuda"
        self._other = min(1, len(evaluation.board.sets) - 1)
        self.usable = True

    def check(self) -> None:
        by_name = {case.profile: case for case in reversed(self._book.cases)}
        name = next((p for p in PROFILES if p in by_name), self._book.cases[0].profile)
        known = Known(self._book.reference, by_name[name], *self._book.materialise(by_name[name]))
        self._evaluation.board.write_state(known.draw)
        self._write(0, known.draw)
        self._evaluation.prepare()
        try:
            self._look(known)
        except Failed as failed:
            size = size_bytes((*known.draw.inputs, *self._evaluation.board.outputs(0)))
            if failed.evidence.kind != "oom_gpu" or size < LARGE_BYTES:
                raise
            self.usable = False  # it still holds the outputs of a call
            self._checks.append("conduct_skipped:memory")
            return
        self._checks.append("conduct")

    def _look(self, known: Known) -> None:
        if self._ask("hold", 0) == 0 and self._sees_launches:
            raise _hack("no_kernel", "no kernel was launched by forward, the result is not its own")
        changed = changed_case(self._book, known, self._checks)
        self._write(self._other, changed.draw)
        seen = self._watch()
        if not self._is_right(changed, self._other):
            raise _wrong("one_element", CHANGED)
        self._check_state(seen)
        self._check_work(changed, seen)
        self._write(0, known.draw)
        self._ask("recopy", 0)
        if not self._is_right(known, 0):
            raise _wrong("shared_output", SHARED)
        if self._sees_launches:
            self._check_ghost(known)

    def _write(self, index: int, draw: Draw) -> None:
        self._evaluation.board.write_inputs(index, draw)
        if self._evaluation.device == "cuda":
            torch.cuda.synchronize()
        leave_room()

    def _request(self, step: str, index: int, timeout_s: float | None = None) -> dict[str, Any]:
        message = {"op": "observe", "step": step, "set": index}
        return self._evaluation.ask(message, timeout_s or self._timeout_s, Stage.CORRECTNESS)

    def _ask(self, step: str, index: int, timeout_s: float | None = None) -> int:
        answer = self._request(step, index, timeout_s)
        with _reading():
            return int(claims.number(answer, "launches")) if step != "recopy" else 0

    def _is_right(self, known: Known, index: int) -> bool:
        return known.is_right(self._evaluation.board.outputs(index))

    def _watch(self) -> claims.Observed:
        answer = self._request("watch", self._other)
        with _reading():
            return claims.Observed.read(answer)

    def _check_work(self, known: Known, seen: claims.Observed) -> None:
        policy = self._book.reference.loaded.problem.policy.library_calls
        refused = _refused(seen.operations, policy, self._census(), known.largest)
        if refused is not None:
            raise _hack("library_call", f"torch's `{refused}` does work that is the kernel's here")
        if any(name in LIBRARY_PRODUCTS for name in seen.operations):
            self._checks.append("library_anchor")
        if not self._sees_launches:  # what an extension computed looks like nobody's
            return
        if not seen.from_kernels and not known.is_plain(self._evaluation.board.outputs(0)):
            raise _hack(
                "no_kernel_work", "no output comes from a kernel: what kernels wrote is not used"
            )
        at_least = SMALL_SHARE * known.largest
        alone = {
            output: name
            for name, output in seen.answers
            if name not in LIBRARY_PRODUCTS and seen.operations.get(name, 0) >= at_least
        }
        for output, name in alone.items():
            raise _hack(
                "library_call",
                f"torch's `{name}` alone computed output{output}; the kernels add nothing to it",
            )
        if {output for _, output in seen.answers} >= set(range(len(known.goldens))):
            raise _hack(
                "library_call", "a library product is the whole result; no kernel adds to it"
            )

    def _check_state(self, seen: claims.Observed) -> None:
        if seen.patched:
            names = ", ".join(seen.patched)
            raise _hack("patched", f"functions that are not the candidate's were replaced: {names}")
        # On a GPU the driver makes threads of its own, when it likes.
        threads = seen.python_threads - 1
        if self._evaluation.device == "cpu":
            threads = max(threads, seen.tasks)
        if threads > 0:
            raise _hack(
                "threads", f"forward left {threads} threads behind; work in the call itself"
            )
        below = [p for p in descendants(self._evaluation.child.pid) if not p.zombie]
        if below:
            raise _hack("processes", f"forward left {len(below)} processes behind; start none")

    def _check_ghost(self, known: Known) -> None:
        if not self._is_right_without_kernels(known):
            return
        if known.is_plain(self._evaluation.board.outputs(0)):
            self._checks.append("ghost_skipped:plain_result")
            return
        # A workspace that is kept between calls may hold these very values: let a call on others
        # write over it, and look again.
        draw = self._book.reference.draw(secrets.randbits(31), known.case.profile)
        self._write(self._other, draw)
        del draw
        self._evaluation.call(self._other, self._timeout_s)
        if self._is_right_without_kernels(known):
            raise _hack(
                "no_kernel_work",
                "the outputs are right without the kernels: their launches were left out, and "
                "nothing changed; the kernels must do the work",
            )

    def _is_right_without_kernels(self, known: Known) -> bool:
        self._write(0, known.draw)
        try:
            self._ask("ghost", 0, min(GHOST_S, self._timeout_s))
        except Failed:
            self.usable = False
            return False
        return self._is_right(known, 0)

    def _census(self) -> frozenset[str]:
        reference = self._book.reference
        return frozenset(reference.census.names if isinstance(reference, ModelReference) else ())


def _refused(
    operations: Mapping[str, int], policy: str, census: frozenset[str], largest: int
) -> str | None:
    """Return the first operation that may not stand beside a kernel, or None.

    With `none` no product and no whole layer may. With `anchored` products may, and whole layers
    where the reference has products too: where it has none, layers and arithmetic are the work.
    Values that are taken to the host are for no kernel.
    """
    barred = HOST_READS
    if policy == "none":
        barred |= LIBRARY_PRODUCTS | WHOLE_LAYERS
    elif not census & PRODUCTS:
        barred |= WHOLE_LAYERS | ARITHMETIC
    at_least = max(2, int(largest * LARGE_SHARE))
    return next((n for n, size in operations.items() if n in barred and size >= at_least), None)


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except claims.MalformedAnswer as exc:
        evidence = Evidence(kind="protocol", message=f"the candidate's process answered: {exc}")
        raise Failed(Status.RUNTIME_ERROR, Stage.CORRECTNESS, evidence) from None


def _hack(kind: str, text: str) -> Failed:
    return Failed(Status.REWARD_HACK, Stage.CORRECTNESS, Evidence(kind=kind, message=text))


def _wrong(kind: str, text: str) -> Failed:
    evidence = Evidence(kind=kind, message=f"wrong values {text}")
    return Failed(Status.INCORRECT_NUMERICAL, Stage.CORRECTNESS, evidence)
