"""OutsideVerifier: a judge that is nowhere near, reached by files.

What it is asked for and does not know yet is noted in the run's journal, and `Pending` is raised.
`hotloop bundle` collects these notes (`pending_items`), `hotloop judge` answers them elsewhere, and
`take_in` puts the answers into the journal, where the same question then finds them.

`outside_notes` names the notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate
from hotloop.core.finals import is_enough
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Store
from hotloop.core.record import from_json, to_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.errors import Pending, ProblemError
from hotloop.verify.bundle import Item, JudgeError, Verdicts
from hotloop.verify.outside_notes import (
    AUDIT,
    CLOSING,
    ERROR,
    INFO,
    VERDICT,
    WANTED,
    Wish,
    last_audit,
    load_errors,
    refusals_by_wish,
    unanswered_in_full,
    wishes,
)
from hotloop.verify.static_stage import static_verdict

_WHAT_TO_DO = (
    "hotloop bundle RUN --out FILE, on the GPU machine hotloop judge --bundle FILE --out VERDICTS, "
    "then this command with --verdicts VERDICTS"
)


class OutsideVerifier:
    """Implements `core.protocols.Verifier` with answers that somebody carries here."""

    def __init__(self, store: Store, problem: Problem, *, wants_full: bool = False) -> None:
        """Look nowhere yet; the journal is asked at each call.

        Args:
            store: the run's journal.
            problem: what is judged.
            wants_full: whether a passed verdict of the short final tier is not enough.
        """
        self._store = store
        self._wants_full = wants_full
        self._problem = problem
        self._info: ProblemInfo | None = None

    def load(self, problem: Problem) -> ProblemInfo:
        """Return what the judge elsewhere found. See `core.protocols.Verifier`.

        Raises:
            Pending: it has not come back yet.
            ProblemError: the judge elsewhere could not load the problem.
        """
        self._problem = problem
        if self._info is not None and self._info.problem_id == problem.id:
            return self._info
        for note in self._store.notes(INFO):
            if note["problem_id"] == problem.id:
                self._info = from_json(ProblemInfo, note["info"])
                return self._info
        for note in load_errors(self._store.notes(ERROR)):
            if note["problem_id"] == problem.id:
                failure = from_json(JudgeError, note)
                raise (failure.problem_error or ProblemError)(failure.message)
        raise self._want(None, None, "the problem has to be loaded on a GPU machine")

    def build(self, candidate: Candidate) -> None:
        """Do nothing: the judge elsewhere builds."""

    def verify(self, candidate: Candidate, tier: Tier) -> Verdict:
        """Return a refusal of the static rules, or the verdict that came back.

        Raises:
            Pending: it has not come back yet.
        """
        info = self.load(self._problem)
        is_asked = (candidate.id, tier.value) in wishes(self._store.notes(WANTED))
        if not is_asked:  # else the static rules let it through; candidates wait in hundreds
            refused = static_verdict(
                candidate, self._problem, tier, device=info.device, environment=info.environment
            )
            if refused is not None:
                return refused
        known = [
            from_json(Verdict, note["verdict"])
            for note in self._store.notes(VERDICT)
            if (note["candidate_id"], note["tier"]) == (candidate.id, tier.value)
        ]
        for verdict in known:
            if is_enough(verdict, wants_full=self._wants_full):
                return verdict
        tier_name = f"{tier.value}, the full one" if known else tier.value
        what = f"candidate {candidate.id} has to be judged ({tier_name})"
        raise self._want(candidate.id, tier.value, what, in_full=bool(known))

    def close(self) -> None:
        """Do nothing: no process was started."""

    def _want(
        self, candidate_id: str | None, tier: str | None, what: str, *, in_full: bool = False
    ) -> Pending:
        """Note what is wanted, once, and return what to raise."""
        notes = self._store.notes(WANTED)
        if (candidate_id, tier) not in wishes(n for n in notes if n.get("full") or not in_full):
            note = {"problem_id": self._problem.id, "candidate_id": candidate_id, "tier": tier}
            self._store.note(WANTED, note | {"full": True} if in_full else note)
        return Pending(f"{what}: {_WHAT_TO_DO}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a verdict file brought to one run."""

    infos: int = 0
    verdicts: int = 0
    errors: int = 0
    """Problems that could not be loaded: `load` raises it."""
    refusals: int = 0
    """Wishes that came back without a verdict: how often they did decides how the run goes on."""
    ignored: int = 0
    """Records of other runs."""
    warnings: tuple[str, ...] = ()
    """What the other machine could not judge; it stays pending."""


def take_in(store: Store, problem: Problem, verdicts: Verdicts) -> Taken:
    """Write into the journal what is new for this run and was asked for; the rest is counted.

    Idempotent: a record that is there already is skipped.
    """
    known = _Known(store)
    infos = found = broken = ignored = 0
    for info in verdicts.infos.values():
        if info.problem_id != problem.id:
            ignored += 1
        elif not known.has_info:
            store.note(INFO, {"problem_id": problem.id, "info": to_json(info)})
            known.has_info = True
            infos += 1
        else:
            known.renew_audit(store, info)
    for verdict in verdicts.verdicts:
        wish = (verdict.candidate_id, verdict.tier.value)
        is_short = not is_enough(verdict, wants_full=wish in known.in_full)
        if verdict.problem_id != problem.id or wish not in known.wanted or is_short:
            ignored += 1
        elif wish not in known.answered:
            store.note(VERDICT, _verdict_note(verdict))
            known.answered.add(wish)
            found += 1
    warnings, refused = list[str](), known.refusals.total()
    for error in verdicts.errors:
        if error.problem_id != problem.id:
            ignored += 1
        elif error.problem_error is not None and not known.has_info:
            broken += known.add_error(store, error)
        elif (message := known.warn(store, error)) is not None:
            warnings.append(message)
    refused, told = known.refusals.total() - refused, tuple(warnings)
    return Taken(
        infos=infos, verdicts=found, errors=broken, refusals=refused, ignored=ignored, warnings=told
    )


class RunRecords(Protocol):
    """What `pending_items` reads of a run: a `RunReader`, or any other view of its journal."""

    def problem(self) -> Problem: ...  # noqa: D102
    def attempts(self) -> Sequence[Attempt]: ...  # noqa: D102
    def notes(self, kind: str) -> Sequence[Mapping[str, Any]]: ...  # noqa: D102
    def candidate(self, candidate_id: str) -> Candidate: ...  # noqa: D102


def pending_items(
    reader: RunRecords, *, wants_counters: bool = True, short: bool = False
) -> list[Item]:
    """Return what a run wants judged elsewhere and has no answer to, oldest first.

    Args:
        reader: the run.
        wants_counters: whether its prompts show hardware counters.
        short: whether its final tier is the short one.
    """
    problem_id = reader.problem().id
    answered = wishes(reader.notes(VERDICT))
    if not short:
        answered -= unanswered_in_full(reader.notes(WANTED), reader.notes(VERDICT))
    if reader.notes(INFO) or load_errors(reader.notes(ERROR)):
        answered.add((None, None))
    attempts = reader.attempts()
    incumbent_ms = _best_ms(attempts)
    # An attempt may have ended without the answer: it was given up, or judged here after all.
    answered |= {(a.candidate_id, Tier.FAST.value) for a in attempts if a.verdict is not None}
    refusals = refusals_by_wish(reader.notes(ERROR))
    closing = reader.notes(CLOSING)
    is_closed = bool(closing and closing[-1]["closes"])
    wanted = dict.fromkeys((n["candidate_id"], n["tier"]) for n in reader.notes(WANTED))
    return [
        Item(
            problem_id=problem_id,
            candidate=None if candidate_id is None else reader.candidate(candidate_id),
            tier=None if tier is None else Tier(tier),
            incumbent_ms=incumbent_ms,
            wants_counters=wants_counters,
            short=short and tier == Tier.FINAL.value,
            asked=1 + refusals[candidate_id, tier],
        )
        for candidate_id, tier in wanted
        if (candidate_id, tier) not in answered
        and not (is_closed and tier == Tier.FAST.value)  # the search goes on without them
    ]


class _Known:
    """What a journal holds already."""

    def __init__(self, store: Store) -> None:
        self.wanted = wishes(store.notes(WANTED))
        self.in_full = unanswered_in_full(store.notes(WANTED), store.notes(VERDICT))
        self.answered = wishes(store.notes(VERDICT)) - self.in_full
        self.has_info = bool(store.notes(INFO))
        self._audit = last_audit(store)
        errors = store.notes(ERROR)
        self._has_error = bool(load_errors(errors))
        self.refusals = refusals_by_wish(errors)
        self._warned = {note.get("message") for note in store.notes("warning")}

    def renew_audit(self, store: Store, info: ProblemInfo) -> None:
        """Keep an audit of a later load, which spares the next load another one."""
        audit = info.audit
        if audit is not None and (self._audit is None or self._audit.key != audit.key):
            store.note(AUDIT, {"problem_id": info.problem_id, "audit": to_json(audit)})
            self._audit = audit

    def add_error(self, store: Store, error: JudgeError) -> bool:
        if self._has_error:
            return False
        store.note(ERROR, to_json(error))
        self._has_error = True
        return True

    def warn(self, store: Store, error: JudgeError) -> str | None:
        what = f"candidate {error.candidate_id}" if error.candidate_id else "the problem"
        so = "it stays pending" if error.asked == 1 else f"it was asked for {error.asked} times"
        message = f"not judged elsewhere: {what}: {error.error}: {error.message}; {so}"
        wish = self._refused_wish(error)
        if wish is not None:
            # How often decides whether it is asked for again, or gone on without.
            store.note(ERROR, {**to_json(error), "tier": wish[1]})
            self.refusals[wish] += 1
        if message in self._warned:
            return None
        store.note("warning", {"message": message})
        self._warned.add(message)
        return message

    def _refused_wish(self, error: JudgeError) -> Wish | None:
        """Return which wish an error answers; None where none, or where it is known already.

        The same file may come twice: an error counts only for the asking that it is of.
        """
        for wish in sorted(w for w in self.wanted - self.answered if w[0] is not None):
            is_tier = error.tier is None or error.tier.value == wish[1]
            if wish[0] == error.candidate_id and is_tier:
                return wish if error.asked > self.refusals[wish] else None
        return None


def _verdict_note(verdict: Verdict) -> dict[str, Any]:
    return {
        "candidate_id": verdict.candidate_id,
        "tier": verdict.tier.value,
        "verdict": to_json(verdict),
    }


def _best_ms(attempts: Sequence[Attempt]) -> float | None:
    times = [
        attempt.verdict.performance.latency_ms
        for attempt in attempts
        if attempt.verdict is not None and attempt.verdict.performance is not None
    ]
    return min(times, default=None)
