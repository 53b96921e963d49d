"""StoreSuite: what every store has to do."""

# ruff: noqa: D102  the name of a test says what it checks

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.attempt import Attempt, Budget
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.protocols import Store
from hotloop.errors import ForeignRun, StoreError
from hotloop.testing.fakes import fake_verdict, make_problem, make_spec


class StoreSuite:
    """What every store has to do."""

    def make(self, folder: Path) -> Any:
        """Return an empty store; `folder` is free for it to use."""
        raise NotImplementedError("a subclass of StoreSuite returns its store here")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Any:
        """Return a store whose run has begun."""
        store = self.make(tmp_path / "run")
        store.begin(make_spec(make_problem()), make_problem())
        yield store
        if hasattr(store, "close"):
            store.close()

    def test_a_new_run_is_empty(self, store: Store) -> None:
        assert list(store.attempts()) == []
        assert store.spent_s() == 0.0
        assert list(store.notes("final")) == []

    def test_an_attempt_comes_back_as_it_was(self, store: Store) -> None:
        attempt, candidate = make_attempt(3)
        store.propose(attempt, candidate)
        assert list(store.attempts()) == [attempt]
        concluded = conclude(attempt)
        store.conclude(concluded)
        assert list(store.attempts()) == [concluded]
        assert store.candidate(candidate.id) == candidate

    def test_attempts_are_in_order_of_id(self, store: Store) -> None:
        for number in (3, 1, 2):
            store.propose(*make_attempt(number))
        assert [a.id for a in store.attempts()] == [1, 2, 3]

    def test_an_attempt_may_wait_for_its_candidate(self, store: Store) -> None:
        attempt, candidate = make_attempt(1)
        store.propose(replace(attempt, candidate_id=None), None)
        store.propose(attempt, candidate)
        assert list(store.attempts()) == [attempt]

    def test_two_attempts_may_share_a_candidate(self, store: Store) -> None:
        attempt, candidate = make_attempt(1)
        store.propose(attempt, candidate)
        store.propose(replace(attempt, id=2), candidate)
        assert [a.candidate_id for a in store.attempts()] == [candidate.id] * 2

    def test_a_candidate_that_is_not_the_attempts_is_refused(self, store: Store) -> None:
        attempt, _ = make_attempt(1)
        with pytest.raises(ValueError, match="candidate"):
            store.propose(attempt, make_attempt(2)[1])

    def test_a_verdict_is_final(self, store: Store) -> None:
        attempt, candidate = make_attempt(1)
        store.propose(attempt, candidate)
        store.conclude(conclude(attempt))
        with pytest.raises(ValueError, match="1"):
            store.conclude(conclude(attempt))
        with pytest.raises(ValueError, match="1"):
            store.propose(attempt, candidate)

    def test_only_open_attempts_are_concluded(self, store: Store) -> None:
        with pytest.raises(ValueError, match="1"):
            store.conclude(conclude(make_attempt(1)[0]))

    def test_a_conclusion_needs_a_verdict(self, store: Store) -> None:
        attempt, candidate = make_attempt(1)
        store.propose(attempt, candidate)
        with pytest.raises(ValueError, match="verdict"):
            store.conclude(attempt)

    def test_notes_come_back_in_order(self, store: Store) -> None:
        store.note("warning", {"message": "first"})
        store.note("final", {"attempt_id": 1})
        store.note("warning", {"message": "second"})
        assert [n["message"] for n in store.notes("warning")] == ["first", "second"]

    @pytest.mark.parametrize("kind", ["begun", "proposed", "concluded", "spent"])
    def test_the_journals_own_kinds_are_reserved(self, store: Store, kind: str) -> None:
        with pytest.raises(ValueError, match=kind):
            store.note(kind, {})

    def test_spending_adds_up(self, store: Store) -> None:
        store.spend(1.5)
        store.spend(0.25)
        assert store.spent_s() == 1.75
        with pytest.raises(ValueError, match="-1"):
            store.spend(-1.0)
        assert store.spent_s() == 1.75

    def test_an_unknown_candidate_is_an_error(self, store: Store) -> None:
        with pytest.raises(StoreError, match="feedfacefeedface"):
            store.candidate("feedfacefeedface")

    def test_the_same_run_begins_again(self, store: Store) -> None:
        problem = make_problem()
        store.begin(make_spec(problem, budget=Budget(wall_s=60.0)), problem)

    def test_another_problem_is_refused(self, store: Store) -> None:
        other = make_problem("fake/other", source="# another\n")
        with pytest.raises(ForeignRun, match="fake/other"):
            store.begin(make_spec(other), other)

    def test_another_device_is_refused(self, store: Store) -> None:
        problem = make_problem()
        with pytest.raises(ForeignRun, match="device"):
            store.begin(make_spec(problem, device="cpu"), problem)


def make_attempt(number: int) -> tuple[Attempt, Candidate]:
    """Return a pending attempt and its candidate."""
    candidate = Candidate(
        language="triton",
        sources=(SourceFile(path="kernel.py", text=f"# candidate {number}: \u00fc\n"),),
        pins={"BLOCK": number},
    )
    attempt = Attempt(
        id=number,
        action="schedule",
        point={"BLOCK": number, "split": True, "mode": "a"},
        parents=(),
        generator="fake",
        candidate_id=candidate.id,
        verdict=None,
        objective=None,
        started_s=0.5,
        finished_s=None,
    )
    return attempt, candidate


def conclude(attempt: Attempt) -> Attempt:
    """Return an attempt with a PASSED verdict."""
    verdict = fake_verdict(1.5, attempt.candidate_id or "")
    return replace(attempt, verdict=verdict, objective=1.5, finished_s=2.0)
