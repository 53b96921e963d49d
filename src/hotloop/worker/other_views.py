"""Shapes besides the problem's own: listed in its file, or made here from its size constants.

What a model may be told of (`boundary`) follows from the problem's id, so every judge of a problem
shows the same shapes. What is held out is drawn in secret, is used at the final tier only, and is
at least `HELD_OUT_FRAC` of all.

Where any shape must work (`generic`), these decide: a few at the fast tier, all at the final one.
Where only the problem's own must (`nominal`), they are run after a final that passed, and reported.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from hotloop.core.problem import Problem, Role, Workload
from hotloop.errors import HotloopError
from hotloop.worker.arena import Offset
from hotloop.worker.boundary_sizes import HELD_OUT, HELD_OUT_FRAC, SHOWN, SizeSpace, proposals
from hotloop.worker.size_trial import runs_on_cpu, size_space
from hotloop.worker.timed import secret_seed
from hotloop.worker.value_profiles import RANDOM_PARAMETERS
from hotloop.worker.view import Shape, WorkloadView, log_step

FAST_SHAPES = 2
"""Shapes of ours at the fast tier, where any must work: each costs a process."""
REDUCED = "reduced"
"""Name of the problem's own sizes made small."""
BUILD_S = 30.0
"""No further shape of a role is made after this: slow shown shapes leave time for held-out ones."""
OFFSET_BYTES = 1 << 30
"""The problem's own sizes are also laid out with an offset where they take no more than this."""
_GENERIC_OFFSETS = (Offset.NONE, Offset.ELEMENT, Offset.SIXTEEN)


@dataclass(slots=True)
class OtherViews:
    """The views of all workloads but the nominal one; built when they are first asked for."""

    problem: Problem
    nominal: WorkloadView
    device: str
    free_others: Callable[[], None]
    notes: list[str] = field(default_factory=list)
    """Why there are no other shapes; safe to show a model."""
    _built: dict[str, WorkloadView | None] = field(default_factory=dict)
    """By name; None where the reference does not accept such a shape."""
    _space: list[SizeSpace | None] = field(default_factory=list)
    _used: list[dict[str, int]] = field(default_factory=list)
    _covered: set[str] = field(default_factory=set)
    _spent_s: dict[Role, float] = field(default_factory=dict)

    @property
    def decides(self) -> bool:
        """Whether a candidate must be right on other shapes too."""
        return self.problem.policy.shape_scope == "generic"

    def built(self) -> list[WorkloadView]:
        """Return the views that there are."""
        return [view for view in self._built.values() if view is not None]

    def clear(self) -> None:
        """Forget all views."""
        self._built.clear()

    def deciding(self, *, held_out: bool) -> list[WorkloadView]:
        """Return the views that a candidate must pass; held-out ones at the final tier only.

        Raises:
            ProblemError: a workload of the problem's own list is broken.
        """
        if not self.decides:
            return []
        listed = [self._listed(w) for w in self._others() if held_out or w.role != Role.HELD_OUT]
        return [*listed, *self._made(Role.BOUNDARY, fast=not held_out), *(
            self._made(Role.HELD_OUT) if held_out else ()
        )]  # fmt: skip

    def reported(self) -> Iterator[WorkloadView]:
        """Yield the views of a report that decides nothing, the problem's own sizes first."""
        if self.decides:
            return
        yield from self._nominal_offset()
        for workload in self._others():
            try:
                yield self._listed(workload)
            except HotloopError as exc:
                print(f"hotloop judge: {workload.name} left out: {exc}", file=sys.stderr)
        yield from self._made(Role.BOUNDARY)
        yield from self._made(Role.HELD_OUT)

    def reduced(self) -> WorkloadView | None:
        """Return the problem's own sizes halved until they are small; decides nothing by itself."""
        if REDUCED not in self._built:
            self._built[REDUCED] = self._reduce()
        return self._built[REDUCED]

    def _reduce(self) -> WorkloadView | None:
        space = self._size_space()
        sizes = space.shrunk() if space is not None else None
        settings = {**self.nominal.workload.settings, **(sizes or {})}
        if not sizes or not runs_on_cpu(self.problem, settings):
            return None
        workload = Workload(name=REDUCED, role=Role.BOUNDARY, settings=settings)
        try:
            return self._build(Shape(workload=workload, profiles=self._profiles()[:1]))
        except HotloopError as exc:
            print(f"hotloop judge: no reduced sizes: {exc}", file=sys.stderr)
            return None

    def _others(self) -> list[Workload]:
        return [w for w in self.problem.workloads if w.role is not Role.NOMINAL]

    def _listed(self, workload: Workload) -> WorkloadView:
        view = self._built.get(workload.name)
        if view is None:
            view = self._build(Shape(workload=workload))
            self._built[workload.name] = view
        return view

    def _build(self, shape: Shape) -> WorkloadView:
        return WorkloadView.build(self.problem, shape, self.device, free_others=self.free_others)

    def _nominal_offset(self) -> Iterator[WorkloadView]:
        own = self.nominal.workload
        if self.nominal.reference.io_bytes > OFFSET_BYTES:
            return
        workload = Workload(name="offset", role=Role.BOUNDARY, settings=own.settings)
        shape = Shape(workload=workload, offset=Offset.SIXTEEN)
        if workload.name not in self._built:
            try:
                self._built[workload.name] = self.nominal.beside(shape)
            except HotloopError as exc:
                self._built[workload.name] = None
                print(f"hotloop judge: no offset inputs: {exc}", file=sys.stderr)
        view = self._built[workload.name]
        if view is not None:
            yield view

    def _made(self, role: Role, *, fast: bool = False) -> Iterator[WorkloadView]:
        """Yield views of shapes made from the size constants, as many as the reference accepts."""
        kinds: tuple[str, ...] = SHOWN
        seed = int(self.problem.id, 16)
        if role is Role.HELD_OUT:
            shown = len(SHOWN) + sum(w.role is Role.BOUNDARY for w in self._others())
            count = max(len(HELD_OUT), math.ceil(shown * HELD_OUT_FRAC / (1 - HELD_OUT_FRAC)))
            kinds = tuple(HELD_OUT[i % len(HELD_OUT)] for i in range(count))
            seed = secret_seed()
        for i, kind in enumerate(kinds[:FAST_SHAPES] if fast else kinds):
            name = f"{role}/made{i}"
            if name not in self._built:
                if self._spent_s.get(role, 0.0) > BUILD_S:
                    return
                offset = _GENERIC_OFFSETS[i % 3] if self.decides else Offset.NONE
                workload = Workload(name=name, role=role)
                shape = Shape(workload=workload, offset=offset, profiles=self._profiles())
                start = time.monotonic()
                self._built[name] = self._make(shape, kind, random.Random(seed + i))
                spent_s = time.monotonic() - start
                self._spent_s[role] = self._spent_s.get(role, 0.0) + spent_s
                log_step(f"workload {name}", start)
            view = self._built[name]
            if view is not None:
                yield view

    def _make(self, like: Shape, kind: str, rng: random.Random) -> WorkloadView | None:
        space = self._size_space()
        if space is None:
            return None
        own = self.nominal.workload.settings
        for sizes in proposals(space, kind, self._covered, rng):
            settings = {**own, **sizes}
            if sizes in self._used or not runs_on_cpu(self.problem, settings):
                continue
            workload = replace(like.workload, settings=settings)
            try:
                view = self._build(replace(like, workload=workload))
            except HotloopError as exc:
                print(f"hotloop judge: {workload.name} left out: {exc}", file=sys.stderr)
                continue
            self._used.append(sizes)
            self._covered |= {n for n, size in sizes.items() if size != space.nominal[n]}
            return view
        return None

    def _profiles(self) -> tuple[str, ...]:
        """Return two: the first, and if there is one, one that also replaces parameters."""
        first, *others = self.nominal.reference.profiles
        return (first, *([p for p in others if p in RANDOM_PARAMETERS] or others)[:1])

    def _size_space(self) -> SizeSpace | None:
        if not self._space:
            own = self.nominal.workload.settings
            self._space.append(size_space(self.problem, own, self.device))
            if self._space[0] is None:
                self.notes.append(
                    "no other sizes could be made: the file states none as constants that shapes "
                    "follow, or needs values to make its inputs"
                )
        return self._space[0]
