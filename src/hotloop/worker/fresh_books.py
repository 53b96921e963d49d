"""The cases of the final tier: seeds that no evaluation saw, and every value profile.

Cases of known profiles take their envelope over; profiles that only the final tier has get one of
their own, and are left out, with a line in the judge's log, where they cannot judge the problem or
do not fit in memory beside the candidate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from hotloop.errors import ProblemError
from hotloop.worker.cases import CaseBook, cache_budget_bytes
from hotloop.worker.timed import secret_seed
from hotloop.worker.view import WorkloadView

FINAL_SEEDS = 5
"""Seeds of the first profile at the problem's own sizes."""


def fresh_books(
    view: WorkloadView, free_others: Callable[[], None], *, whole: bool
) -> Iterator[CaseBook]:
    """Yield books of one case each; a case is gone before the next one is drawn.

    Args:
        view: the workload.
        free_others: frees what other books keep; called where memory runs out.
        whole: `FINAL_SEEDS` seeds of the first profile and all profiles, not the known cases alone.

    Raises:
        DoesNotFit: memory ran out twice, on a case of a known profile.
    """
    first = view.book.cases[0]
    seeds = sum(known.profile == first.profile for known in view.book)
    extra = [first] * max(0, FINAL_SEEDS - seeds) if whole else []
    for known in [*view.book, *extra]:
        book = CaseBook(view.reference, view.workload.name, free_others=free_others)
        book.add_like(known, secret_seed())
        yield book
        book.forget()
    for profile in view.reference.final_profiles if whole else ():
        book = CaseBook(view.reference, view.workload.name, free_others=free_others)
        if _add(book, profile):
            yield book
            book.forget()


def _add(book: CaseBook, profile: str) -> bool:
    left = cache_budget_bytes(book.reference.device)
    try:
        book.add(profile, secret_seed(), cache_bytes=left)
    except ProblemError as exc:  # does not fit either: an envelope takes more than a golden
        text = f"profile {profile!r} left out at the final tier: {exc}"
        print(f"hotloop judge: {text}", file=sys.stderr, flush=True)
        return False
    return True
