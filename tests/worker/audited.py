"""Audits of problem files, made the way a session makes them."""

from hotloop.core.audit import Audit, Trial
from hotloop.worker.audit import audit, cases_of
from hotloop.worker.cases import CaseBook
from hotloop.worker.load import LoadedProblem
from hotloop.worker.reference import build_reference
from hotloop.worker.view import fill_book


def audited(loaded: LoadedProblem) -> Audit:
    """Return the audit of a loaded problem."""
    reference = build_reference(loaded)
    book = CaseBook(reference, "nominal")
    fill_book(book)
    return audit(reference, cases_of([book]), key="k")


def trial(found: Audit, name: str) -> Trial:
    """Return the one trial of that name."""
    trials = [t for t in found.trials if t.name == name]
    assert len(trials) == 1, [t.name for t in found.trials]
    return trials[0]
