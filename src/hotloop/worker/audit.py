"""The audit of a problem: would its checks notice a kernel that does not do the work?

Fakes are made from the reference's own outputs and inputs and judged as candidates are, on the
inputs that candidates are checked on. A problem that lets one pass everywhere is not ranked. Runs
in the judge, where the inputs and expected values already are, before each run.

Each fake is tried on one case after the other until one refuses it: most end with the first. Those
that follow from time left over (blocks of inputs) are tried for `SOFT_S`; none but the cheapest
begins after `HARD_S`.

Not here: the fakes (`audit_fakes.py`, `audit_reading.py`, `audit_dependence.py`,
`audit_precision.py`), what follows from them (`audit_verdict.py`), constants (`degeneracy.py`).
"""

from __future__ import annotations

import gc
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.audit import Audit, FakeGroup, Trial, TrialState
from hotloop.core.record import digest
from hotloop.errors import ProblemError
from hotloop.worker.audit_buffers import buffer_notes
from hotloop.worker.audit_dependence import block_fakes, dependence_fakes, only_own_values
from hotloop.worker.audit_fakes import Fake, NothingToTry, output_fakes, skipped, stale_tiles
from hotloop.worker.audit_precision import precision_fakes
from hotloop.worker.audit_reading import reading_fakes
from hotloop.worker.audit_subject import Subject
from hotloop.worker.audit_verdict import verdict
from hotloop.worker.cases import Case, CaseBook
from hotloop.worker.constant_inputs import unvaried
from hotloop.worker.degeneracy import spread_frac
from hotloop.worker.draw import Reference
from hotloop.worker.memory import ran_out, release_memory
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.own_code import own_digest

SOFT_S = 1.5
"""Blocks of inputs are tried for this long, on a problem's first inputs."""
HARD_S = 8.0
"""On slow problems nothing but fakes of the output begins after this."""
NOTES_SEED = 5


Checked = tuple[CaseBook, Case]
"""A case that candidates are checked on, and the book that can draw it."""


@dataclass(slots=True)
class Tried:
    """One fake and what happened to it so far."""

    fake: Fake
    caught_by: str | None = None
    passed: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    why: str = "the inputs leave nothing to change"
    """Why it was not tried, as long as it was not."""

    @property
    def is_open(self) -> bool:
        """Whether nothing refused it yet."""
        return self.caught_by is None

    def trial(self) -> Trial:
        """Return the record."""
        if self.caught_by is not None:
            state = TrialState.CAUGHT
        elif not self.passed:
            return skipped(self.fake.name, self.fake.group, self.why)
        else:
            state = TrialState.SAME if self.same == self.passed else TrialState.ACCEPTED
        return Trial(
            name=self.fake.name,
            group=self.fake.group,
            state=state,
            caught_by=self.caught_by,
            passed=tuple(dict.fromkeys(self.passed)),
            same=tuple(dict.fromkeys(self.same)),
        )


def audit_key(problem_id: str, environment: Mapping[str, Any]) -> str:
    """Return what an audit holds for: the problem, the machine, and the code that makes it."""
    machine = {k: v for k, v in environment.items() if k != "isolation"}
    return digest([problem_id, machine, own_digest()])


def audit(
    reference: Reference, cases: Iterable[Checked], *, key: str, known: Audit | None = None
) -> Audit:
    """Try every fake that makes sense for a problem.

    Args:
        reference: at the nominal workload.
        cases: what every candidate must pass, the values that are timed first. Later ones are
            taken only while a fake passed all before.
        key: see `audit_key`.
        known: an earlier audit, returned as it is where it holds for the same and was not cut.
    """
    if known is not None and known.key == key and not known.is_cut:
        return known
    start = time.monotonic()
    trying = _Trying(start, is_short=bool(reference.degenerate()))
    spread: dict[str, float] = {}
    for book, case in cases:
        subject = _subject(book, case) or _subject(book, case, alone=True)
        if subject is None:
            trying.stop(f"{case.workload}: {case.profile}: {_NO_MEMORY}")
            break
        if not trying.tried:
            spread = spread_frac(subject.goldens)
            trying.begin(subject)
        trying.run(subject)
        del subject
        if not trying.is_open:
            break
    release_memory()
    judged = [(t.fake, t.trial()) for t in trying.tried]
    reasons, findings = verdict(judged, degenerate=reference.degenerate())
    return Audit(
        key=key,
        trials=trying.trials(),
        reasons=reasons,
        findings=(*findings, *_of_inputs(reference), *_of_buffers(reference)),
        spread_frac=spread,
        seconds=time.monotonic() - start,
        is_cut=trying.is_cut,
    )


class _Trying:
    """All fakes of one audit."""

    def __init__(self, start: float, *, is_short: bool) -> None:
        self._start = start
        self._is_short = is_short
        """Only fakes of the output: the problem is known not to be ranked."""
        self.tried: list[Tried] = []
        self._left: list[Trial] = []
        self.is_cut = False
        """Whether a fake was left out for want of time or memory; see `Audit.is_cut`."""

    @property
    def is_open(self) -> bool:
        return any(t.is_open for t in self.tried)

    def begin(self, subject: Subject) -> None:
        """Choose the fakes for the shapes and types of the first case."""
        fakes, self._left = output_fakes(subject)
        fakes += stale_tiles(subject)
        self.tried = [Tried(f) for f in fakes]
        if self._is_short:
            why = "the problem is degenerate: see the reasons"
            self._left += [skipped("all", group, why) for group in _OF_WORK]
            return
        self.tried += [Tried(f) for f in dependence_fakes(subject)]
        asserting = only_own_values(subject.reference)
        if asserting is None:
            self.tried += [Tried(f) for f in reading_fakes(subject)]
            self.tried += [Tried(f) for f in self._precision(subject)]
        else:
            why = f"{asserting} accepts only a range of values"
            groups = (FakeGroup.READING, FakeGroup.PRECISION)
            self._left += [skipped("all", group, why) for group in groups]
        self.tried += [Tried(f) for f in block_fakes(subject)]

    def stop(self, why: str) -> None:
        """Note that a case could not be looked at."""
        self._left += [skipped("all", group, why) for group in FakeGroup]
        self.is_cut = True

    def run(self, subject: Subject) -> None:
        """Try on one case what nothing refused yet."""
        for tried in self.tried:
            if not tried.is_open:
                continue
            if self._is_late(tried):
                tried.why = "no time was left for it"
                self.is_cut = self.is_cut or not _is_block(tried.fake)
                continue
            try:
                _try(tried, subject)
            except NothingToTry as exc:
                tried.why = str(exc)
            except Exception as exc:  # noqa: BLE001  memory, or the problem's own code
                tried.why = _excuse(exc)
            if tried.why == _NO_MEMORY:
                self.is_cut = True
                release_memory()

    def trials(self) -> tuple[Trial, ...]:
        """Return all records, those that were not tried last."""
        found = sorted(
            (*(t.trial() for t in self.tried), *self._left),
            key=lambda t: t.state is TrialState.SKIPPED,
        )
        return tuple(found)

    def _precision(self, subject: Subject) -> list[Fake]:
        try:
            fakes, left = precision_fakes(subject)
        except Exception as exc:  # noqa: BLE001
            self._left.append(skipped("lower precision", FakeGroup.PRECISION, _excuse(exc)))
            return []
        self._left += left
        return fakes

    def _is_late(self, tried: Tried) -> bool:
        if tried.fake.group is FakeGroup.OUTPUT:
            return False
        optional = tried.fake.group is FakeGroup.DEPENDENCE and not tried.passed
        is_block = optional and _is_block(tried.fake)
        return time.monotonic() - self._start > (SOFT_S if is_block else HARD_S)


def _is_block(fake: Fake) -> bool:
    """Whether a fake is one of many alike, of which some may be left out."""
    return fake.group is FakeGroup.DEPENDENCE and " block " in fake.name


_OF_WORK = (FakeGroup.READING, FakeGroup.DEPENDENCE, FakeGroup.PRECISION)
_NO_MEMORY = "it does not fit in memory beside the rest"


def _try(tried: Tried, subject: Subject) -> None:
    made = tried.fake.make(subject)
    if made is None:
        return
    if not subject.passes(made):
        tried.caught_by = subject.where
        return
    del made
    tried.passed.append(subject.where)
    if tried.fake.is_answer(subject):
        tried.same.append(subject.where)


def _excuse(error: Exception) -> str:
    """Return why a fake could not be made; what is nobody's fault but ours goes to the log too.

    An audit that cannot try one fake says so, and the run goes on.
    """
    if ran_out(error):
        return _NO_MEMORY
    if isinstance(error, ProblemError):
        return "the reference does not accept such values"
    traceback.print_exception(error)
    return f"it could not be made: {type(error).__name__}: {str(error)[:120]}"


def _subject(book: CaseBook, case: Case, *, alone: bool = False) -> Subject | None:
    """Return the case as a subject; None where memory runs out.

    Args:
        book: has the case.
        case: to look at.
        alone: free first what all books keep.
    """
    if alone:
        book.forget()
        book.free_others()
        gc.collect()
        release_memory()
    try:
        draw, goldens = book.materialise(case)
        return Subject(book.reference, case, draw, goldens, book.reference.eager(draw))
    except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
        if not ran_out(exc):
            raise
        return None


def _of_inputs(reference: Reference) -> tuple[str, ...]:
    return unvaried(reference.reach) if isinstance(reference, ModelReference) else ()


def _of_buffers(reference: Reference) -> tuple[str, ...]:
    try:
        return buffer_notes(reference, NOTES_SEED)
    except Exception as exc:  # noqa: BLE001  memory alone is no error here
        if not ran_out(exc):
            raise
        return ()


def cases_of(books: Iterable[CaseBook]) -> Iterator[Checked]:
    """Yield the cases of books: of each the first of every profile, then those of more seeds."""
    for book in books:
        firsts = {case.profile: case for case in reversed(book.cases)}
        profiles = dict.fromkeys(case.profile for case in book.cases)
        order = [firsts[profile] for profile in profiles]
        chosen = {id(case) for case in order}
        yield from ((book, case) for case in order)
        yield from ((book, case) for case in book.cases if id(case) not in chosen)
