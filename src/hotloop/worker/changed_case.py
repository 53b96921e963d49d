"""A case with one element of each input changed, and what belongs into its outputs.

Made once for a book, because its golden costs as much as any other, and again for each final tier.
It is kept where there is room and forgotten with the rest.
"""

from __future__ import annotations

import torch

from hotloop.errors import InfraError
from hotloop.worker.cases import Case, CaseBook, Changed
from hotloop.worker.compare import reseeded
from hotloop.worker.kept_memory import kept_bytes
from hotloop.worker.known_case import Known, size_bytes
from hotloop.worker.memory import ran_out
from hotloop.worker.one_element import with_one_changed
from hotloop.worker.random_sources import FORMS
from hotloop.worker.reference import Draw

MAX_CHANGED_BYTES = 1 << 30
"""Larger inputs are not copied to be changed."""
TRIES = 16
"""Draws of a place within a form; half of them miss a triangle."""
KEPT_FRAC = 0.1
"""Share of the free device memory that a kept one may take."""


def changed_case(book: CaseBook, known: Known, checks: list[str], *, anew: bool = False) -> Known:
    """Return the inputs of `known` with one element of each free tensor changed, and the golden.

    Args:
        book: whose case `known` is.
        known: the case as it was drawn.
        checks: gets `one_element_skipped:REASON` where that cannot be had.
        anew: change other elements than the last time.

    Returns:
        The changed case, or `known` where there is none.
    """
    made = book.changed
    if anew or made is None or made.origin is not known.case:
        made = _make(book, known)
        book.changed = made if _has_room(made) else None
    if made.why is not None:
        checks.append(f"one_element_skipped:{made.why}")
    if made.case is None or made.case.kept is None:
        return known
    return Known(book.reference, made.case, *made.case.kept)


def _make(book: CaseBook, known: Known) -> Changed:
    tensors = [v for v in known.draw.inputs if isinstance(v, torch.Tensor)]
    if size_bytes(tensors) > MAX_CHANGED_BYTES:
        return Changed(known.case, why="large")
    reference = book.reference
    free = getattr(reference, "sources", ("normal",) * len(known.draw.inputs))
    inputs = tuple(
        _changed(v, law) if law is not None and isinstance(v, torch.Tensor) else v
        for v, law in zip(known.draw.inputs, free, strict=True)
    )
    draw = Draw(inputs, known.draw.state, known.draw.seed, known.draw.profile)
    try:
        goldens, eager = reference.golden(draw), reference.eager(draw)
    except InfraError:
        raise
    except Exception as exc:  # noqa: BLE001  the problem's code: it may refuse our values
        return Changed(known.case, why="memory" if ran_out(exc) else type(exc).__name__)
    if not all(bool(torch.isfinite(t).all()) for t in goldens if t.is_floating_point()):
        return Changed(known.case, why="nonfinite")
    bounds = tuple(
        reseeded(bound, golden, (member,))
        for bound, golden, member in zip(known.case.bounds, goldens, eager, strict=True)
    )
    case = Case(known.case.workload, known.case.profile, known.case.seed, bounds, (draw, goldens))
    return Changed(known.case, case=case)


def _changed(tensor: torch.Tensor, law: str) -> torch.Tensor:
    """Change one element that a kernel has to read: of a triangle none that its form makes 0."""
    into_form = FORMS.get(law)
    if into_form is None:
        return with_one_changed(tensor)
    for _ in range(TRIES):
        changed = with_one_changed(tensor)
        into_form(changed)
        if not torch.equal(changed, tensor):
            return changed
    return tensor


def _has_room(made: Changed) -> bool:
    if made.case is None or made.case.kept is None:
        return True
    draw, goldens = made.case.kept
    size = kept_bytes(draw, goldens)
    if not any(t.is_cuda for t in goldens):
        return size <= MAX_CHANGED_BYTES
    free_bytes, _ = torch.cuda.mem_get_info()
    return size <= KEPT_FRAC * free_bytes
