"""Cases: the inputs that a candidate is checked on, with their goldens and bounds.

A case is one value profile with one secret seed. Bounds (a few numbers and one value a tile) are
computed once at set-up; the inputs and goldens themselves are kept while they fit in a share of the
device's memory and drawn again from the seed when they do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from hotloop.errors import ProblemError
from hotloop.worker.compare import Bound, make_bound, reseeded
from hotloop.worker.reference import Draw, Reference

MAX_CONDITIONING = 0.10
"""Envelope error over golden maximum beyond which the gate says nothing."""
CACHE_FRAC = 0.35
"""Share of the free device memory that kept inputs and goldens may take."""


@dataclass(slots=True)
class Case:
    """One checked call."""

    workload: str
    profile: str
    seed: int
    bounds: tuple[Bound, ...]
    kept: tuple[Draw, tuple[torch.Tensor, ...]] | None = None


@dataclass(slots=True)
class CaseBook:
    """All cases of one reference at one tier."""

    reference: Reference
    workload: str
    cases: list[Case] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, profile: str, seed: int, *, cache_bytes: int) -> int:
        """Add a case, or note why its profile is void. Returns the bytes it keeps.

        Raises:
            ProblemError: the shipped profile itself is broken.
        """
        return self.add_draw(self.reference.draw(seed, profile), cache_bytes=cache_bytes)

    def add_draw(self, draw: Draw, *, cache_bytes: int = 0) -> int:
        """Add a case for inputs that are drawn already. Returns the bytes it keeps.

        Raises:
            ProblemError: it is the first case and its gate would say nothing.
        """
        goldens = self.reference.golden(draw)
        reason = self._void_reason(goldens)
        if reason is None:
            bounds = self._bounds(draw, goldens)
            reason = _ill_conditioned(bounds)
        if reason is not None:
            self._drop(draw.profile, reason)
            return 0
        case = Case(self.workload, draw.profile, draw.seed, bounds)
        size = kept_bytes(draw, goldens)
        if size <= cache_bytes:
            case.kept = (draw, goldens)
        self.cases.append(case)
        return size if case.kept is not None else 0

    def add_like(self, known: Case, seed: int) -> None:
        """Add a case of a known one's profile with another seed; its envelope is taken over."""
        draw = self.reference.draw(seed, known.profile)
        goldens = self.reference.golden(draw)
        reason = self._void_reason(goldens)
        if reason is not None:
            self.notes.append(f"a draw of profile {known.profile!r} left out: {reason}")
            return
        bounds = tuple(reseeded(b, g) for b, g in zip(known.bounds, goldens, strict=True))
        self.cases.append(Case(self.workload, known.profile, seed, bounds, (draw, goldens)))

    def materialise(self, case: Case) -> tuple[Draw, tuple[torch.Tensor, ...]]:
        """Return the inputs and goldens of a case, drawn again if they were not kept."""
        if case.kept is not None:
            return case.kept
        draw = self.reference.draw(case.seed, case.profile)
        return draw, self.reference.golden(draw)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def _bounds(self, draw: Draw, goldens: Sequence[torch.Tensor]) -> tuple[Bound, ...]:
        members = self.reference.envelope(draw)
        eager = members["eager"]
        exact = self.reference.is_exact(draw.profile)
        return tuple(
            make_bound(golden, [m[i] for m in members.values()], eager[i].dtype, exact=exact)
            for i, golden in enumerate(goldens)
        )

    def _void_reason(self, goldens: Sequence[torch.Tensor]) -> str | None:
        for i, golden in enumerate(goldens):
            if golden.dtype.is_complex:
                return f"output {i} is complex, which the gate cannot compare"
            if golden.dtype.is_floating_point and not bool(torch.isfinite(golden).all().item()):
                return f"output {i} of the reference is not finite"
        return None

    def _drop(self, profile: str, reason: str) -> None:
        if not self.cases:
            raise ProblemError(
                f"expected a reference that can be checked, got: {reason} (profile {profile!r}); "
                "mend the reference or its inputs"
            )
        self.notes.append(f"profile {profile!r} left out: {reason}")


def _ill_conditioned(bounds: Sequence[Bound]) -> str | None:
    for i, bound in enumerate(bounds):
        if not bound.exact and math.isinf(bound.conditioning):
            return f"output {i}: a legitimate implementation is not finite, or the golden is 0"
        if not bound.exact and bound.conditioning > MAX_CONDITIONING:
            return (
                f"output {i} is ill-conditioned: legitimate implementations differ by "
                f"{bound.conditioning:.0%} of its largest value"
            )
    return None


def kept_bytes(draw: Draw, goldens: Sequence[torch.Tensor]) -> int:
    """Return the memory that a case's inputs, parameters and goldens take."""
    tensors = [
        t for t in (*draw.inputs, *draw.state.values(), *goldens) if isinstance(t, torch.Tensor)
    ]
    return sum(t.numel() * t.element_size() for t in tensors)


def cache_budget_bytes(device: str) -> int:
    """Return how much memory kept cases may take on `device`."""
    if device == "cuda":
        free, _ = torch.cuda.mem_get_info()
        return int(free * CACHE_FRAC)
    return 1 << 30
