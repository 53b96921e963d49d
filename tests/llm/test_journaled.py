"""A finished call is never paid twice; what was lost is sent once more and says so."""

import sqlite3
from dataclasses import replace

import pytest
from asking import KEY, NO_RETRY, PLANTED_KEY, ask, asking, prompt

from hotloop.core.model import Reply
from hotloop.errors import (
    AuthError,
    Cancelled,
    DeadlinePassed,
    EndpointDown,
    NotRecorded,
    Pending,
    SentTwice,
)
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.continuing import ContinuingModel
from hotloop.llm.directory import DirectoryModel
from hotloop.llm.journaled import JournaledModel
from hotloop.llm.recording import Recording, write_recording
from hotloop.llm.replay import ReplayModel
from hotloop.store.memory import MemoryStore
from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fakes import make_problem, make_spec
from hotloop.testing.model_server import Turn


class Script:
    """A model that does the next thing of its list."""

    name = "script"

    def __init__(self, *steps, paid=True):
        self.steps = list(steps)
        self.paid = paid
        self.calls = 0

    def complete(self, prompt, *, key, deadline_s):
        step = self.steps[self.calls]
        self.calls += 1
        if isinstance(step, BaseException):
            raise step
        return step

    def cancel(self, key):
        pass

    def close(self):
        pass


REPLY = Reply(text="x = 1", model="m")
DEATH = KeyboardInterrupt()
"""Stands for the end of the process: nobody writes anything after it."""


def open_sqlite(folder):
    store = SqliteStore(folder)
    store.begin(make_spec(make_problem()), make_problem())
    return store


def journaled(inner, store):
    return JournaledModel(inner, CallNotes(store))


def test_a_finished_call_is_never_paid_twice(tmp_path):
    inner = Script(REPLY)
    with open_sqlite(tmp_path / "run") as store:
        model = journaled(inner, store)
        assert ask(model) == ask(model) == REPLY
    with open_sqlite(tmp_path / "run") as store:
        assert ask(journaled(inner, store)) == REPLY
    assert inner.calls == 1


def test_the_intent_is_durable_before_the_call_and_the_reply_before_it_is_read(tmp_path):
    def kinds():
        with sqlite3.connect(tmp_path / "run" / "journal.sqlite") as connection:
            rows = connection.execute("SELECT kind FROM events ORDER BY seq").fetchall()
        connection.close()
        return [kind for (kind,) in rows if kind.startswith("call_")]

    seen = []

    class Watching(Script):
        def complete(self, prompt, *, key, deadline_s):
            seen.append(kinds())
            return super().complete(prompt, key=key, deadline_s=deadline_s)

    with open_sqlite(tmp_path / "run") as store:
        ask(journaled(Watching(REPLY), store))
        seen.append(kinds())
    assert seen == [["call_intent"], ["call_intent", "call_response"]]


def test_a_call_lost_with_its_process_is_sent_once_more_and_marked(tmp_path):
    inner = Script(DEATH, REPLY)
    with open_sqlite(tmp_path / "run") as store, pytest.raises(KeyboardInterrupt):
        ask(journaled(inner, store))
    with open_sqlite(tmp_path / "run") as store:
        assert ask(journaled(inner, store)) == replace(REPLY, uncertain=True)
    with open_sqlite(tmp_path / "run") as store:
        assert ask(journaled(inner, store)).uncertain
    assert inner.calls == 2


def test_a_call_lost_twice_is_given_up():
    store, inner = MemoryStore(), Script(DEATH, DEATH, REPLY)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            ask(journaled(inner, store))
    with pytest.raises(SentTwice, match=KEY.text):
        ask(journaled(inner, store))
    assert inner.calls == 2


def test_a_call_that_costs_nothing_is_repeated_without_a_mark():
    store, inner = MemoryStore(), Script(DEATH, DEATH, REPLY, paid=False)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            ask(journaled(inner, store))
    assert ask(journaled(inner, store)) == REPLY


@pytest.mark.parametrize("error", [Cancelled("given up"), DeadlinePassed("too late")])
def test_a_call_that_was_cut_may_have_been_paid(error, tmp_path):
    inner = Script(error, error, error, REPLY)
    for _ in range(3):
        with open_sqlite(tmp_path / "run") as store, pytest.raises(type(error)):
            ask(journaled(inner, store))
    with open_sqlite(tmp_path / "run") as store:
        # Whoever cuts it on purpose may do so as often as he likes: it is asked again, and marked.
        assert ask(journaled(inner, store)).uncertain
        assert [note["kind"] for note in store.notes("call_failed")] == [type(error).__name__] * 3
        assert CallNotes(store).recorded()[0].reply.uncertain


def test_a_call_that_was_cut_and_then_lost_with_its_process_is_given_up():
    store, inner = MemoryStore(), Script(Cancelled("given up"), DEATH, REPLY)
    with pytest.raises(Cancelled):
        ask(journaled(inner, store))
    with pytest.raises(KeyboardInterrupt):
        ask(journaled(inner, store))
    with pytest.raises(SentTwice):
        ask(journaled(inner, store))
    assert inner.calls == 2


def test_a_call_that_was_cut_and_cost_nothing_has_no_mark():
    store, inner = MemoryStore(), Script(Cancelled("given up"), REPLY, paid=False)
    with pytest.raises(Cancelled):
        ask(journaled(inner, store))
    assert ask(journaled(inner, store)) == REPLY


def test_a_cut_call_is_recorded_with_its_failure():
    store = MemoryStore()
    with pytest.raises(DeadlinePassed):
        ask(journaled(Script(DeadlinePassed("too late")), store))
    (call,) = CallNotes(store).recorded()
    assert (call.reply, call.error.kind) == (None, "DeadlinePassed")


def test_a_failure_is_settled_and_may_be_asked_again_without_a_mark():
    store, inner = MemoryStore(), Script(EndpointDown("away"), REPLY)
    with pytest.raises(EndpointDown):
        ask(journaled(inner, store))
    (note,) = store.notes("call_failed")
    assert (note["kind"], note["message"]) == ("EndpointDown", "away")
    assert ask(journaled(inner, store)) == REPLY


def test_another_prompt_under_the_same_key_is_another_call():
    store, inner = MemoryStore(), Script(REPLY, replace(REPLY, text="y"))
    model = journaled(inner, store)
    assert [ask(model, "a").text, ask(model, "b").text] == ["x = 1", "y"]


def test_pending_calls_stay_open_for_as_long_as_it_takes(tmp_path):
    store = MemoryStore()
    model = journaled(DirectoryModel(tmp_path / "answers", wait=False), store)
    for _ in range(3):
        with pytest.raises(Pending) as caught:
            ask(model)
    with open(caught.value.waiting[0].replace(".prompt.", ".reply."), "w") as file:
        file.write("x = 1")
    reply = ask(model)
    assert (reply.text, reply.uncertain) == ("x = 1", False)


def test_a_key_is_in_no_byte_of_the_journal(tmp_path):
    quoting = Turn(text=f"your key is {PLANTED_KEY}", usage={"prompt_tokens": 1, "k": PLANTED_KEY})
    failing = Turn(status=401, error={"message": f"bad key {PLANTED_KEY}"})
    run = tmp_path / "run"
    with asking(quoting, failing, retry=NO_RETRY) as (_, client), open_sqlite(run) as store:
        model = journaled(client, store)
        ask(model)
        with pytest.raises(AuthError, match="HTTP 401"):
            ask(model, "another")
        assert len(store.notes("call_response")) == len(store.notes("call_failed")) == 1
        data = b"".join(p.read_bytes() for p in run.rglob("*") if p.is_file())
    assert b"your key is" in data
    assert PLANTED_KEY.encode() not in data


def test_a_run_is_recorded_from_its_journal_and_played_again(tmp_path):
    store = MemoryStore()
    later = replace(KEY, attempt=2)
    first = ContinuingModel(journaled(Script(REPLY, NotRecorded("over")), store))
    ask(first, "a")
    with pytest.raises(NotRecorded):
        ask(first, "b", key=later)
    calls = tuple(CallNotes(store).recorded())
    assert [(c.key, c.prompt) for c in calls] == [(KEY, prompt("a")), (later, prompt("b"))]
    path = tmp_path / "run.jsonl"
    recording = Recording(model="m", problems={KEY.problem_id: "fake/copy"}, calls=calls)
    write_recording(path, recording)
    played = ReplayModel(path)
    assert ask(played, "a") == REPLY
    with pytest.raises(NotRecorded, match="over"):
        ask(played, "b", key=later)
    assert played.summary() is None
