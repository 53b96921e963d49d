"""What a reader tells of a journal that grows: its newest line, what is new, parts of records."""

import json
from dataclasses import replace

from hotloop.core.attempt import Attempt
from hotloop.core.problem import Problem, ProblemKind
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import make_spec

ATTEMPT = Attempt(
    id=1, action="draft", point={}, parents=(), generator="model", candidate_id=None, verdict=None,
    objective=None, started_s=0.0, finished_s=None,
)  # fmt: skip


def write(folder, *notes):
    problem = Problem(name="made", kind=ProblemKind.NATIVE, source="import torch\n")
    with SqliteStore(folder) as store:
        store.begin(make_spec(problem), problem)
        for kind, payload in notes:
            store.note(kind, payload)
    return folder


def test_what_is_new_comes_in_order_and_of_the_kinds_asked_for(tmp_path):
    folder = write(tmp_path / "r", ("a", {"n": 1}), ("b", {"n": 2}), ("a", {"n": 3}))
    with RunReader(folder) as reader:
        first, second = reader.events_of(("a",))
        assert (first.payload, second.payload) == ({"n": 1}, {"n": 3})
        assert [e.payload["n"] for e in reader.events_of(("a", "b"), after=first.seq)] == [2, 3]
        assert reader.last_event().seq == second.seq
        assert reader.first_written_at() <= reader.last_event().written_at
        assert reader.events_of(("a",), after=second.seq) == []


def test_paths_are_left_out_and_nothing_else_is(tmp_path):
    deep = {"keep": [1, {"x": "é\u202e"}], "drop": {"big": list(range(50))}, "none": None}
    folder = write(tmp_path / "r", ("a", {"v": deep}), ("a", {"v": None}), ("a", {"other": 1.5}))
    with RunReader(folder) as reader:
        found = [e.payload for e in reader.events_of(("a",), without=("$.v.drop", "$.missing"))]
        whole = [e.payload for e in reader.events_of(("a",))]
    kept = {name: value for name, value in deep.items() if name != "drop"}
    assert found == [{"v": kept}, {"v": None}, {"other": 1.5}]
    assert whole == json.loads(json.dumps([{"v": deep}, {"v": None}, {"other": 1.5}]))


def test_calls_are_those_of_one_attempt(tmp_path):
    notes = [("asked_for", {"key": {"attempt": n}, "n": n}) for n in (1, 2, 1)]
    folder = write(tmp_path / "r", *notes, ("else", {"key": {"attempt": 1}}))
    with RunReader(folder) as reader:
        assert [n.payload["n"] for n in reader.call_notes(("asked_for",), 1)] == [1, 1]
        assert len(reader.call_notes(("asked_for", "else"), 1)) == 3
        assert reader.call_notes(("asked_for",), 7) == []
        assert reader.attempt_record(1) is None


def test_attempts_are_read_again_when_the_journal_grows_and_only_then(tmp_path):
    problem = Problem(name="made", kind=ProblemKind.NATIVE, source="import torch\n")
    with SqliteStore(tmp_path / "r") as store:
        store.begin(make_spec(problem), problem)
        store.propose(ATTEMPT, None)
        with RunReader(tmp_path / "r") as reader:
            first = reader.attempts()
            assert [attempt.id for attempt in first] == [1]
            assert reader.attempts() is first
            store.propose(replace(ATTEMPT, id=2), None)
            assert [attempt.id for attempt in reader.attempts()] == [1, 2]
            assert [attempt.id for attempt in first] == [1], "what was given stays as it was"
