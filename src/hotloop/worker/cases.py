"""Cases: the inputs that a candidate is checked on, with their goldens and bounds.

A case is one value profile with one secret seed. Bounds (a few numbers and one value a tile) are
computed once at set-up; the inputs and goldens themselves are kept while they fit in a share of the
device's memory and drawn again from the seed when they do not. Where memory runs out while inputs
are drawn or a golden is evaluated, everything kept is freed and it is done once more.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch

from hotloop.errors import ProblemError
from hotloop.worker.compare import Bound, Rigour, make_bound, reseeded
from hotloop.worker.few_values import with_more_draws
from hotloop.worker.kept_memory import kept_bytes
from hotloop.worker.memory import DoesNotFit, describe_memory, ran_out, release_memory
from hotloop.worker.nonfinite import void_reason
from hotloop.worker.reference import Draw, Outputs, Reference

T = TypeVar("T")

MAX_CONDITIONING = 0.10
"""Envelope error over golden maximum beyond which the gate says nothing."""
RENEWED_S = 0.3
"""How long an envelope may have taken that runs on a new draw as well; eager alone runs otherwise.
Where two scores of a softmax all but tie, each member's error is luck of the draw."""


@dataclass(slots=True)
class Case:
    """One checked call."""

    workload: str
    profile: str
    seed: int
    bounds: tuple[Bound, ...]
    kept: tuple[Draw, tuple[torch.Tensor, ...]] | None = None
    envelope_s: float = math.inf
    """What its whole envelope took; infinite where it did not run."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A case made of another one by changing its inputs: see `changed_case.py`."""

    origin: Case
    case: Case | None = None
    why: str | None = None
    """Why there is none."""


@dataclass(slots=True)
class CaseBook:
    """All cases of one reference at one tier."""

    reference: Reference
    workload: str
    cases: list[Case] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    members: dict[str, None] = field(default_factory=dict)
    """Names of the implementations that stand in an envelope, in order."""
    free_others: Callable[[], None] = lambda: None
    """Frees what is kept in other books; called where memory runs out."""
    changed: Changed | None = None
    """The last that was made, where it is kept."""

    def add(self, profile: str, seed: int, *, cache_bytes: int) -> int:
        """Add a case, or note why its profile is void. Returns the bytes it keeps.

        Raises:
            ProblemError: the shipped profile itself is broken.
            DoesNotFit: memory ran out twice.
        """
        return self._with_room(
            profile, lambda: self._add(self.reference.draw(seed, profile), cache_bytes)
        )

    def add_draw(self, draw: Draw, *, cache_bytes: int = 0) -> int:
        """Add a case for inputs that are drawn already. Returns the bytes it keeps.

        Raises:
            ProblemError: it is the first case and its gate would say nothing.
            DoesNotFit: memory ran out twice.
        """
        return self._with_room(draw.profile, lambda: self._add(draw, cache_bytes))

    def _add(self, draw: Draw, cache_bytes: int) -> int:
        start = time.monotonic()
        goldens = self.reference.golden(draw)
        reason = self._void_reason(goldens)
        golden_s = time.monotonic() - start
        if reason is None:
            bounds = self._bounds(draw, goldens)
            reason = ill_conditioned(bounds)
        if reason is not None:
            self._drop(draw.profile, reason)
            return 0
        took_s = time.monotonic() - start
        bounds = self._with_more_draws(bounds, draw, took_s)
        size, envelope_s = kept_bytes(draw, goldens), took_s - golden_s
        kept = (draw, goldens) if size <= cache_bytes else None
        self.cases.append(Case(self.workload, draw.profile, draw.seed, bounds, kept, envelope_s))
        return size if kept is not None else 0

    def add_like(self, known: Case, seed: int) -> None:
        """Add a case of a known one's profile with another seed; its envelope is taken over.

        Eager runs on the new inputs too, the other members where they are quick: what only these
        inputs do to an error, they show. Where the inputs turn out ill-conditioned, the case is
        left out with a note.

        Raises:
            DoesNotFit: memory ran out twice.
        """
        start = time.monotonic()
        draw, goldens = self._evaluate(seed, known.profile)
        reason = self._void_reason(goldens)
        took_s = time.monotonic() - start + known.envelope_s
        if reason is None:
            members = self._renewed(known, draw)
            bounds = tuple(
                reseeded(known.bounds[i], golden, [outputs[i] for outputs in members])
                for i, golden in enumerate(goldens)
            )
            reason = ill_conditioned(bounds)
        if reason is not None:
            self.notes.append(f"a draw of profile {known.profile!r} left out: {reason}")
            return
        bounds = self._with_more_draws(bounds, draw, took_s)
        self.cases.append(Case(self.workload, known.profile, seed, bounds, (draw, goldens)))

    def materialise(self, case: Case) -> tuple[Draw, tuple[torch.Tensor, ...]]:
        """Return the inputs and goldens of a case, drawn again if they were not kept.

        Raises:
            DoesNotFit: memory ran out twice.
        """
        if case.kept is not None:
            return case.kept
        return self._evaluate(case.seed, case.profile)

    def draw_of(self, case: Case) -> Draw:
        """Return the inputs of a case; evaluates no golden.

        Raises:
            DoesNotFit: memory ran out twice.
        """
        if case.kept is not None:
            return case.kept[0]
        return self._with_room(case.profile, lambda: self.reference.draw(case.seed, case.profile))

    def kept_bytes(self) -> int:
        """Return the memory that this book's cases keep."""
        made = () if self.changed is None or self.changed.case is None else (self.changed.case,)
        cases = (*self.cases, *made)
        return sum(kept_bytes(*case.kept) for case in cases if case.kept is not None)

    def forget(self) -> None:
        """Keep no inputs and goldens; they are drawn again from the seeds where they are needed."""
        self.changed = None
        for case in self.cases:
            case.kept = None

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def _evaluate(self, seed: int, profile: str) -> tuple[Draw, tuple[torch.Tensor, ...]]:
        def evaluate() -> tuple[Draw, tuple[torch.Tensor, ...]]:
            draw = self.reference.draw(seed, profile)
            return draw, self.reference.golden(draw)

        return self._with_room(profile, evaluate)

    def _with_room(self, profile: str, work: Callable[[], T]) -> T:
        """Return what `work` returns; where memory runs out, free all that is kept, try once more.

        Raises:
            DoesNotFit: it does not fit then either.
        """
        try:
            return work()
        except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
            if not ran_out(exc):
                raise
        # Out of the handler: the exception's frames hold what the failed try had made.
        self._make_room()
        try:
            return work()
        except Exception as exc:  # noqa: BLE001
            if not ran_out(exc):
                raise
            raise DoesNotFit(
                f"the golden of {self.reference.loaded.problem.name!r} on {profile!r} inputs does "
                "not fit on the device, not even after all that is kept was freed: "
                f"{describe_memory(self.reference.device)}; use smaller sizes"
            ) from None

    def _bounds(self, draw: Draw, goldens: Sequence[torch.Tensor]) -> tuple[Bound, ...]:
        members = self.reference.envelope(draw)
        self.members.update(dict.fromkeys(members))
        exact = self.reference.is_exact(draw.profile)
        return tuple(
            make_bound(
                golden,
                [m[i] for m in members.values()],
                members["eager"][i].dtype,
                exact=exact,
                rigour=self.reference.rigour(draw.profile, i),
            )
            for i, golden in enumerate(goldens)
        )

    def _with_more_draws(
        self, bounds: tuple[Bound, ...], draw: Draw, took_s: float
    ) -> tuple[Bound, ...]:
        """Return the bounds, those of too few values with more draws where these are quick."""

        def bounds_of(seed: int) -> tuple[Bound, ...]:
            other = self.reference.draw(seed, draw.profile)
            goldens = self.reference.golden(other)
            tells = not self._void_reason(goldens) and any(bool(g.any()) for g in goldens)
            found = self._bounds(other, goldens) if tells else ()
            return () if ill_conditioned(found) else found

        return with_more_draws(bounds, draw.seed, bounds_of, took_s=took_s, limit_s=RENEWED_S)

    def _renewed(self, known: Case, draw: Draw) -> list[Outputs]:
        """Return members' outputs on new inputs; none, with a note, where they do not fit.

        Without them an honest kernel may be refused: where values saturate, other parameters leave
        other tiles without an error, and the known envelope has it elsewhere.
        """
        is_quick = known.envelope_s <= RENEWED_S
        for make_room in (self._make_room, release_memory):
            try:
                if is_quick:
                    return list(self.reference.envelope(draw).values())
                return [self.reference.eager(draw)]
            except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
                if not ran_out(exc):
                    raise
            make_room()
            is_quick = False
        self.notes.append(f"eager does not fit beside the golden of {known.profile!r} inputs")
        return []

    def _make_room(self) -> None:
        """Free what this book and others keep. Not in a handler: its frames hold memory."""
        self.forget()
        self.free_others()
        gc.collect()
        release_memory()

    def _void_reason(self, goldens: Sequence[torch.Tensor]) -> str | None:
        for i, golden in enumerate(goldens):
            if golden.dtype.is_complex:
                return f"output {i} is complex, which the gate cannot compare"
            if not golden.dtype.is_floating_point:
                continue
            # against itself: whether implementations agree on it is the envelope's affair
            void = void_reason(golden, golden, allowed=self.reference.nonfinite)
            if void is not None:
                return f"output {i} {void}"
        return None

    def _drop(self, profile: str, reason: str) -> None:
        if not self.cases:
            raise ProblemError(
                f"expected a reference that can be checked, got: {reason} (profile {profile!r}); "
                "mend the reference or its inputs"
            )
        self.notes.append(f"profile {profile!r} left out: {reason}")


def ill_conditioned(bounds: Sequence[Bound]) -> str | None:
    """Return why a gate of these bounds would say nothing of a candidate, or None."""
    for i, bound in enumerate(bounds):
        if not bound.exact and math.isinf(bound.conditioning):
            return f"output {i}: a legitimate implementation is not finite, or the golden is 0"
        is_judged = not bound.exact and bound.rigour is not Rigour.GROSS
        if is_judged and bound.conditioning > MAX_CONDITIONING:
            return (
                f"output {i} is ill-conditioned: legitimate implementations differ by "
                f"{bound.conditioning:.0%} of its largest value"
            )
    return None
