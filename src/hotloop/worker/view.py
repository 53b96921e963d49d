"""One workload as the judge has it: reference, cases, and buffers shared with candidates."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from hotloop.core.problem import Problem, Role, Workload
from hotloop.errors import ProblemError
from hotloop.worker.arena import Offset
from hotloop.worker.board import Board
from hotloop.worker.cases import CaseBook
from hotloop.worker.kept_memory import cache_budget_bytes
from hotloop.worker.load import load_problem
from hotloop.worker.memory import release_memory
from hotloop.worker.module_host import flatten_outputs
from hotloop.worker.reference import Draw, Reference, build_reference
from hotloop.worker.timed import secret_seed

SEEDS = 3
"""Secret seeds of the first profile at the problem's own sizes; every other profile gets one."""
OFFSET_SETTING = "input_offset"
"""Under this name a model is told that inputs were offset, beside the sizes."""
_OFFSET_WORDS = {
    Offset.SIXTEEN: "16 bytes past an aligned address",
    Offset.ELEMENT: "1 element past an aligned address",
}


FirstCase = Callable[[Reference, Draw], None]
"""Takes a reference and the inputs and state of its first case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes that candidates are checked on, and how the inputs lie in memory."""

    workload: Workload
    offset: Offset = Offset.NONE
    profiles: tuple[str, ...] = ()
    """Checked on these alone, against an envelope without its compiled member; empty: on all."""

    @property
    def told(self) -> Workload:
        """The workload with its offset among the settings, for people and models."""
        if self.offset is Offset.NONE:
            return self.workload
        offset = {OFFSET_SETTING: _OFFSET_WORDS[self.offset]}
        return replace(self.workload, settings={**self.workload.settings, **offset})


@dataclass(slots=True)
class WorkloadView:
    """One workload of the problem: its reference, cases and arena."""

    shape: Shape
    reference: Reference
    book: CaseBook
    board: Board

    @property
    def workload(self) -> Workload:
        """Name, role and sizes."""
        return self.shape.workload

    @classmethod
    def build(
        cls,
        problem: Problem,
        shape: Shape,
        device: str,
        *,
        free_others: Callable[[], None] = lambda: None,
        on_first_case: FirstCase = lambda reference, draw: None,
    ) -> WorkloadView:
        """Load the problem at one workload and compute its cases.

        Args:
            problem: what to load.
            shape: its sizes.
            device: `cuda` or `cpu`.
            free_others: frees the cases of other workloads; called where memory runs out.
            on_first_case: told of the first case before the others are made.

        Raises:
            ProblemError: the reference is broken, or its inputs do not fit on the device.
        """
        start = time.monotonic()
        workload = shape.workload
        loaded = load_problem(knowing(problem, shape), device=device, settings=workload.settings)
        loaded.only_profiles = shape.profiles
        reference = build_reference(loaded)
        if shape.profiles:
            reference.skip_compiled()
        else:
            log_step("reference", start)
        book = CaseBook(reference, workload.name, free_others=free_others)
        seeds = SEEDS if workload.role is Role.NOMINAL else 1
        fill_book(book, seeds=seeds, on_first_case=on_first_case)
        return cls(shape, reference, book, _board(book, shape.offset))

    def beside(self, shape: Shape) -> WorkloadView:
        """Return a view of the same sizes, reference and first case with its own buffers."""
        book = CaseBook(self.reference, shape.workload.name, self.book.cases[:1])
        book.free_others = self.book.free_others
        return WorkloadView(shape, self.reference, book, _board(book, shape.offset))


def _board(book: CaseBook, offset: Offset) -> Board:
    draw = book.draw_of(book.cases[0])
    outputs = flatten_outputs(book.reference.eager(draw), book.reference.device)
    release_memory()  # the board's memory does not come from torch's cache
    try:
        return Board.build(book.reference, draw, outputs, offset=offset)
    except MemoryError as exc:
        raise ProblemError(f"the inputs do not fit on the device: {exc}") from exc


def knowing(problem: Problem, shape: Shape) -> Problem:
    """Return the problem with a shape of ours among its workloads, unless it is held out.

    What is told of a failure names workloads that the problem lists, and of others nothing.
    """
    listed = any(w.name == shape.workload.name for w in problem.workloads)
    if listed or shape.workload.role is Role.HELD_OUT:
        return problem
    return replace(problem, workloads=(*problem.workloads, shape.told))


def log_step(what: str, start: float) -> None:
    """Say on standard error (the judge's log) how long a step of the set-up took."""
    print(f"hotloop judge: {what}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)


def fill_book(
    book: CaseBook,
    *,
    seeds: int = SEEDS,
    on_first_case: FirstCase = lambda reference, draw: None,
) -> None:
    """Add the cases of the fast tier: `seeds` of the first profile and one of each other.

    Raises:
        ProblemError: the first profile is broken.
    """
    reference = book.reference
    left = cache_budget_bytes(reference.loaded.device)
    first, *others = reference.profiles
    is_told = False
    for profile in [first] * seeds + list(others):
        start = time.monotonic()
        left -= book.add(profile, secret_seed(), cache_bytes=left)
        log_step(f"case {profile}", start)  # the first one compiles the reference
        if not is_told:
            on_first_case(reference, book.draw_of(book.cases[0]))
            is_told = True
