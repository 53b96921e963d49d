"""Conduct: how a candidate comes to its right results. Runs once a workload, after they were right.

Four more calls on one case (`observation.py` serves them):

    hold     launches no kernel at all                 -> no kernel does the work
    watch    other addresses, one element of each input changed: wrong values -> results do not
             follow the inputs; no output comes from a kernel, or torch alone computed one; an
             operation that the policy does not allow; threads, processes, patched functions
    recopy   the first call's outputs again: changed   -> calls share an output buffer
    ghost    no kernel runs: all outputs still right   -> kernels do not do the work

Values are judged by the gate, in the judge's own buffers. What is said of launches, operations and
threads is the candidate's process's claim: it catches what is plain, and a replay of the recorded
launches (final tier, `cuda`) settles it. Not covered: launches of C++ extensions (no `hold`, no
`ghost`); candidates in `.cu` files, which have no code around their kernels.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.sandbox.processes import descendants
from hotloop.worker import claims
from hotloop.worker.cases import Case, CaseBook
from hotloop.worker.census import LIBRARY_PRODUCTS, PRODUCTS, WHOLE_LAYERS
from hotloop.worker.compare import gate, reseeded
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.memory import leave_room, ran_out
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.reference import Draw, Outputs
from hotloop.worker.ties import only_ties

PROFILES = ("normal", "shipped")
"""Preferred in this order: where parameters are constants, a kernel's part may change nothing."""
MAX_CHANGED_BYTES = 1 << 30
"""Larger inputs are not copied to be changed."""
STEP = 0.75
LARGE_SHARE = 0.5
"""An operation on a tensor of this share of the problem's largest is work, not preparation."""
CHANGED = (
    "after one element of each input was changed and the inputs were put elsewhere: results must "
    "follow the inputs of their own call"
)
SHARED = "of a call once forward was called again: return memory of its own from each call"


@dataclass(frozen=True, slots=True)
class _Known:
    """Inputs and what belongs into the outputs."""

    case: Case
    draw: Draw
    goldens: Outputs


def check_conduct(evaluation: Evaluation, book: CaseBook, timeout_s: float) -> None:
    """Look at how a candidate that was right on all cases of a book works.

    Raises:
        Failed: it does not do the work, or not with its kernels.
    """
    if not evaluation.candidate.entry.endswith(".py") or not book.cases:
        return
    _Conduct(evaluation, book, timeout_s).check()


class _Conduct:
    def __init__(self, evaluation: Evaluation, book: CaseBook, timeout_s: float) -> None:
        self._evaluation = evaluation
        self._book = book
        self._timeout_s = timeout_s
        self._sees_launches = evaluation.candidate.language != "cuda"
        self._other = min(1, len(evaluation.board.sets) - 1)

    def check(self) -> None:
        by_name = {case.profile: case for case in reversed(self._book.cases)}
        name = next((p for p in PROFILES if p in by_name), self._book.cases[0].profile)
        known = _Known(by_name[name], *self._book.materialise(by_name[name]))
        board = self._evaluation.board
        board.write_state(known.draw)
        self._write(0, known.draw)
        self._evaluation.prepare()
        if self._ask("hold", 0) == 0 and self._sees_launches:
            raise _hack("no_kernel", "no kernel was launched by forward, the result is not its own")
        changed = self._changed(known)
        self._write(self._other, changed.draw)
        seen = self._watch()
        if not self._is_right(changed, self._other):
            raise _wrong("one_element", CHANGED)
        self._check_state(seen)
        self._check_work(known, seen)
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

    def _request(self, step: str, index: int) -> dict[str, Any]:
        message = {"op": "observe", "step": step, "set": index}
        return self._evaluation.ask(message, self._timeout_s, Stage.CORRECTNESS)

    def _ask(self, step: str, index: int) -> int:
        answer = self._request(step, index)
        with _reading():
            return int(claims.number(answer, "launches")) if step != "recopy" else 0

    def _is_right(self, known: _Known, index: int) -> bool:
        return all(self._right(known, index))

    def _right(self, known: _Known, index: int) -> list[bool]:
        outputs = self._evaluation.board.outputs(index)
        return [
            gate(output, golden, known.case.bounds[i]).passed
            or only_ties(self._book.reference, known.draw, i, output, golden)
            for i, (output, golden) in enumerate(zip(outputs, known.goldens, strict=True))
        ]

    def _changed(self, known: _Known) -> _Known:
        """Return the same inputs with one element of each free tensor changed, and the golden."""
        tensors = [v for v in known.draw.inputs if isinstance(v, torch.Tensor)]
        if sum(t.numel() * t.element_size() for t in tensors) > MAX_CHANGED_BYTES:
            return known
        reference = self._book.reference
        free = getattr(reference, "sources", ("normal",) * len(known.draw.inputs))
        inputs = tuple(
            _with_one_changed(v) if law is not None and isinstance(v, torch.Tensor) else v
            for v, law in zip(known.draw.inputs, free, strict=True)
        )
        draw = Draw(inputs, known.draw.state, known.draw.seed, known.draw.profile)
        try:
            goldens, eager = reference.golden(draw), reference.eager(draw)
        except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
            if not ran_out(exc):
                raise
            return known
        if not all(bool(torch.isfinite(t).all()) for t in goldens if t.is_floating_point()):
            return known
        bounds = tuple(
            reseeded(bound, golden, (member,))
            for bound, golden, member in zip(known.case.bounds, goldens, eager, strict=True)
        )
        case = Case(known.case.workload, known.case.profile, known.case.seed, bounds)
        return _Known(case, draw, goldens)

    def _watch(self) -> claims.Observed:
        answer = self._request("watch", self._other)
        with _reading():
            return claims.Observed.read(answer)

    def _check_work(self, known: _Known, seen: claims.Observed) -> None:
        policy = self._book.reference.loaded.problem.policy.library_calls
        refused = _refused(seen.operations, policy, self._census(), self._largest(known))
        if refused is not None:
            raise _hack("library_call", f"torch's `{refused}` does work that is the kernel's here")
        if not self._sees_launches:  # what an extension computed looks like nobody's
            return
        if not seen.from_kernels:
            raise _hack(
                "no_kernel_work", "no output comes from a kernel: what kernels wrote is not used"
            )
        alone = {output: name for name, output in seen.answers if name not in LIBRARY_PRODUCTS}
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

    def _check_ghost(self, known: _Known) -> None:
        self._write(0, known.draw)
        self._ask("ghost", 0)
        if self._is_right(known, 0):
            raise _hack(
                "no_kernel_work",
                "the outputs are right without the kernels: their launches were left out, and "
                "nothing changed; the kernels must do the work",
            )

    def _census(self) -> frozenset[str]:
        reference = self._book.reference
        return frozenset(reference.census.names if isinstance(reference, ModelReference) else ())

    @staticmethod
    def _largest(known: _Known) -> int:
        tensors = [v for v in known.draw.inputs if isinstance(v, torch.Tensor)]
        return max((t.numel() for t in (*tensors, *known.goldens)), default=0)


def _refused(
    operations: Mapping[str, int], policy: str, census: frozenset[str], largest: int
) -> str | None:
    """Return the first operation that may not stand beside a kernel, or None.

    With `none` no product and no whole layer may. With `anchored` products may, and whole layers
    where the reference has products too: where it has none, the layer is the work.
    """
    barred = frozenset[str]()
    if policy == "none":
        barred = LIBRARY_PRODUCTS | WHOLE_LAYERS
    elif not census & PRODUCTS:
        barred = WHOLE_LAYERS
    at_least = max(2, int(largest * LARGE_SHARE))
    return next((n for n, size in operations.items() if n in barred and size >= at_least), None)


def _with_one_changed(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy with one element moved most of the way to the tensor's value farthest from it.

    The new value lies within the range of the others and equals none of them: it makes no ties. Its
    place is odd and drawn in the middle half: not where a look at the ends, or at every second
    element, would find it.
    """
    if not tensor.is_floating_point() or tensor.numel() < 8:
        return tensor
    # The strides count: a candidate may rely on them.
    changed = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    changed.copy_(tensor)
    n = tensor.numel()
    place = random.SystemRandom().randrange(n // 4, 3 * n // 4) | 1
    where = []
    for extent in reversed(tensor.shape):
        where.append(place % extent)
        place //= extent
    at = tuple(reversed(where))
    farthest = tensor.reshape(-1)[(tensor - tensor[at]).abs().argmax()]
    changed[at] += STEP * (farthest - tensor[at])
    return changed


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
