from dataclasses import replace

import pytest
from asking import KEY, NO_RETRY, ask, asking

from hotloop.core.model import Finish, Usage
from hotloop.errors import EndpointDown
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.continuing import BE_BRIEF, CONTINUE, ContinuingModel, join_texts
from hotloop.llm.journaled import JournaledModel
from hotloop.store.memory import MemoryStore
from hotloop.testing.model_server import Turn

HEAD = "Here:\n```python\nimport triton\n\ndef f(x):\n    return x"
TAIL = " + 1\n```\n"


def cut(text, **changes):
    return Turn(text=text, finish="length", **changes)


def test_an_answer_cut_inside_a_fence_is_continued_once():
    with asking(cut(HEAD), Turn(text=TAIL)) as (server, client):
        reply = ask(ContinuingModel(client), "Write it.")
    assert reply.text == HEAD + TAIL
    assert reply.finish is Finish.STOP
    assert reply.usage == Usage(prompt=200, cached=80, reasoning=60, completion=100)
    assert [m["content"] for m in server.asked[1].body["messages"]] == ["Write it.", HEAD, CONTINUE]


def test_an_answer_that_was_never_begun_is_asked_for_again():
    with asking(cut("<think>long thoughts"), Turn(text="x = 1")) as (server, client):
        reply = ask(ContinuingModel(client), "Write it.")
    assert (reply.reasoning, reply.text) == ("long thoughts", "x = 1")
    (message,) = server.asked[1].body["messages"]
    assert message["content"] == f"Write it.\n\n{BE_BRIEF}"


def test_a_second_cut_is_not_continued():
    with asking(cut(HEAD), cut(" + 1")) as (server, client):
        reply = ask(ContinuingModel(client))
    assert reply.finish is Finish.LENGTH
    assert len(server.asked) == 2


def test_a_whole_answer_is_left_alone():
    with asking(Turn(text="x = 1")) as (server, client):
        assert ask(ContinuingModel(client)).text == "x = 1"
    assert len(server.asked) == 1


def test_a_failing_continuation_leaves_the_first_part():
    with asking(cut(HEAD), Turn(status=500), retry=NO_RETRY) as (_, client):
        reply = ask(ContinuingModel(client))
    assert (reply.text, reply.finish) == (HEAD, Finish.LENGTH)
    assert "HTTP 500" in reply.raw["continuation_failed"]


def test_a_failing_first_part_is_an_error():
    with asking(Turn(status=500)) as (_, client), pytest.raises(EndpointDown):
        ask(ContinuingModel(client))


def test_each_part_is_a_call_of_its_own_in_the_journal():
    store = MemoryStore()
    with asking(cut(HEAD), Turn(text=TAIL)) as (server, client):
        for _ in range(2):
            model = ContinuingModel(JournaledModel(client, CallNotes(store)))
            assert ask(model).text == HEAD + TAIL
        assert len(server.asked) == 2
    keys = [call.key for call in CallNotes(store).recorded()]
    assert keys == [KEY, replace(KEY, part=1)]


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        (HEAD, TAIL, HEAD + TAIL),
        ("abc", "", "abc"),
        (HEAD, "def f(x):\n    return x + 1\n```", f"{HEAD} + 1\n```"),
        (HEAD, "```python\n + 1\n```", f"{HEAD} + 1\n```"),
        (HEAD, f"{HEAD[6:]}{TAIL}", f"{HEAD[6:]}{TAIL}"),
        ("x = (1,\n", "2)\n", "x = (1,\n2)\n"),
        ("a\n    b\n", "    b\n", "a\n    b\n    b\n"),
    ],
)
def test_what_a_model_repeats_is_dropped(first, second, joined):
    assert join_texts(first, second) == joined
