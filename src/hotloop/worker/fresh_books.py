"""The cases of the final tier: seeds that no evaluation saw, and every value profile.

Cases of known profiles take their envelope over; profiles that only the final tier has get one of
their own, and are left out, with a line in the judge's log, where they cannot judge the problem or
do not fit in memory beside the candidate. Where references take long, further seeds and profiles
are left out after a while, and said to be.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, MutableMapping

from hotloop.errors import ProblemError
from hotloop.worker.cases import Case, CaseBook
from hotloop.worker.kept_memory import cache_budget_bytes
from hotloop.worker.memory import ran_out
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.timed import secret_seed
from hotloop.worker.view import WorkloadView

FINAL_SEEDS = 5
"""Seeds of the first profile at the problem's own sizes."""


LATE_S = {"cuda": 20.0, "cpu": 600.0}
"""After so long no further seed or profile begins: a final tier is to take less than a minute."""


def fresh_books(
    view: WorkloadView,
    free_others: Callable[[], None],
    skipped: MutableMapping[str, str],
    *,
    whole: bool,
) -> Iterator[CaseBook]:
    """Yield books of one case each; a case is gone before the next one is drawn.

    Args:
        view: the workload.
        free_others: frees what other books keep; called where memory runs out.
        skipped: gets what was left out, and why.
        whole: `FINAL_SEEDS` seeds of the first profile and all profiles, not the known cases alone.

    Raises:
        DoesNotFit: memory ran out twice, on a case of a known profile.
    """
    began_s, late_s = time.monotonic(), LATE_S[view.reference.device]
    for known in view.book:
        yield from _like(view, known, free_others, skipped)
    if not whole:
        return
    first = view.book.cases[0]
    seeds = sum(known.profile == first.profile for known in view.book)
    optional: list[str | None] = [None] * max(0, FINAL_SEEDS - seeds)
    for profile in [*optional, *view.reference.final_profiles]:
        if time.monotonic() - began_s > late_s:
            what = f"a further seed of {first.profile}" if profile is None else profile
            skipped[f"correctness:{what}"] = f"no time was left for it after {late_s:.0f} s"
        elif profile is None:
            yield from _like(view, first, free_others, skipped)
        else:
            yield from _first_of(view, profile, free_others)


def _like(
    view: WorkloadView,
    known: Case,
    free_others: Callable[[], None],
    skipped: MutableMapping[str, str],
) -> Iterator[CaseBook]:
    book = CaseBook(view.reference, view.workload.name, free_others=free_others)
    book.add_like(known, secret_seed())
    if book.notes:
        what = f"correctness:another draw of {known.profile}"
        known_notes = skipped[what].split("; ") if what in skipped else []
        skipped[what] = "; ".join(dict.fromkeys([*known_notes, *book.notes]))
    yield book
    book.forget()


def _first_of(
    view: WorkloadView, profile: str, free_others: Callable[[], None]
) -> Iterator[CaseBook]:
    book = CaseBook(view.reference, view.workload.name, free_others=free_others)
    if _add(book, profile):
        yield book
        book.forget()


def _add(book: CaseBook, profile: str) -> bool:
    left, reference = cache_budget_bytes(book.reference.device), book.reference
    while True:
        try:
            book.add(profile, secret_seed(), cache_bytes=left)
        except ProblemError as exc:  # does not fit either: an envelope takes more than a golden
            told = None
            if isinstance(reference, ModelReference) and not ran_out(exc):
                told = reference.kept_inputs.keep_at_last(profile)
            _log(told or f"profile {profile!r} left out at the final tier: {exc}")
            if told is None:
                return False
        else:
            return True


def _log(text: str) -> None:
    print(f"hotloop judge: {text}", file=sys.stderr, flush=True)
