"""What is sent, and what is made of an answer."""

import pytest
from asking import KEY, PLANTED_KEY, ask, asking, prompt

from hotloop.core.model import Finish, Usage
from hotloop.core.record import dumps
from hotloop.errors import ToolMissing
from hotloop.llm import openai_client
from hotloop.llm.openai_client import Endpoint, OpenAIModel
from hotloop.llm.presets import find_preset
from hotloop.llm.secrets import Secret
from hotloop.testing.model_server import USAGE, Turn

ANSWER = "Here:\n```python\nx = 1  # \u00fc \U0001f600\n```\n"


def test_an_answer_arrives_whole_with_its_usage():
    with asking(Turn(text=ANSWER, reasoning="First, tiles.")) as (_, client):
        reply = ask(client)
    assert reply.text == ANSWER
    assert reply.reasoning == "First, tiles."
    assert reply.finish is Finish.STOP
    assert reply.usage == Usage(prompt=100, cached=40, reasoning=30, completion=50)
    assert (reply.model, reply.retries, reply.uncertain) == ("scripted", 0, False)
    assert reply.raw["usage"] == USAGE


def test_the_request_streams_and_carries_the_key_in_its_header_alone():
    with asking(Turn(text="ok")) as (server, client):
        ask(client, "Say ok.", max_tokens=77, temperature=0.5)
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {PLANTED_KEY}"
    assert asked.body == {
        "model": "scripted",
        "messages": [{"role": "user", "content": "Say ok."}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 77,
    }


@pytest.mark.parametrize(
    ("preset", "model", "is_sent"),
    [
        ("openai", "gpt-5-mini", False),
        ("openai", "o3", False),
        ("openai", "gpt-4.1", True),
        ("openrouter", "openai/gpt-5.2", False),
        ("deepseek", "deepseek-v4-pro", True),
    ],
)
def test_temperature_is_left_out_where_the_model_forbids_it(preset, model, is_sent):
    with asking(Turn(text="ok"), preset=preset, model=model) as (server, client):
        ask(client, temperature=0.7, max_tokens=9)
    assert ("temperature" in server.asked[0].body) is is_sent
    cap = "max_completion_tokens" if preset == "openai" else "max_tokens"
    assert server.asked[0].body[cap] == 9


def test_a_parameter_that_the_endpoint_names_as_wrong_is_dropped_for_good():
    refused = Turn(status=400, error={"message": "no", "param": "temperature", "code": "bad"})
    with asking(refused, Turn(text="ok")) as (server, client):
        assert ask(client, temperature=0.7).text == "ok"
        assert ask(client, temperature=0.7).text == "ok"
    assert ["temperature" in a.body for a in server.asked] == [True, False, False]


def test_the_users_openai_account_is_not_told_to_others(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-private")
    with asking(Turn(text="ok"), preset="deepseek") as (server, client):
        ask(client)
    assert "private" not in str(server.asked[0].headers)
    with asking(Turn(text="ok"), preset="openai") as (server, client):
        ask(client)
    assert server.asked[0].headers["openai-organization"] == "org-private"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_under_either_name(field):
    turn = Turn(text="x = 1", reasoning="Hm, </think> is a tag.", reasoning_field=field)
    with asking(turn) as (_, client):
        reply = ask(client)
    assert (reply.reasoning, reply.text) == ("Hm, </think> is a tag.", "x = 1")


def test_inline_thinking_is_kept_apart_and_the_raw_text_stays():
    text = "<think>\nTiles of 64.\n</think>\n\nx = 1"
    with asking(Turn(text=text)) as (_, client):
        reply = ask(client)
    assert (reply.reasoning, reply.text) == ("Tiles of 64.", "x = 1")
    assert reply.raw["content"] == text


def test_thinking_that_never_closes_is_no_answer():
    with asking(Turn(text="<think>```python\nx = 1\n```", finish="length")) as (_, client):
        reply = ask(client)
    assert reply.text == ""
    assert "x = 1" in reply.reasoning
    assert reply.finish is Finish.LENGTH


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", Finish.STOP),
        ("length", Finish.LENGTH),
        ("content_filter", Finish.REFUSAL),
        ("tool_calls", Finish.UNKNOWN),
        (None, Finish.UNKNOWN),
    ],
)
def test_why_an_answer_ended_is_told(finish, expected):
    with asking(Turn(text="some text", finish=finish)) as (_, client):
        assert ask(client).finish is expected


def test_a_refusal_is_told_with_its_words():
    with asking(Turn(reasoning="I will not.", reasoning_field="refusal")) as (_, client):
        reply = ask(client)
    assert (reply.text, reply.finish) == ("I will not.", Finish.REFUSAL)


def test_what_cannot_be_stored_is_mended():
    halves = Turn(text="a\ud83d\ude00b\ud83d", piece=1, usage={"prompt_tokens": float("nan")})
    with asking(halves) as (_, client):
        reply = ask(client)
    assert reply.text == "a\U0001f600b\ufffd"
    assert reply.usage == Usage()
    assert dumps(reply).encode()


def test_what_is_not_stated_is_unknown():
    with asking(Turn(text="ok", usage=None)) as (_, client):
        reply = ask(client)
    assert reply.usage == Usage()
    assert reply.cost_usd is None
    partial = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4}
    with asking(Turn(text="ok", usage=partial)) as (_, client):
        assert ask(client).usage == Usage(prompt=10, cached=4, completion=5)


def test_another_url_has_no_known_price():
    with asking(Turn(text="ok"), preset="deepseek", model="deepseek-v4-pro") as (server, client):
        assert ask(client).cost_usd is None
        assert client.name == f"deepseek:deepseek-v4-pro@{server.url}"


def test_an_endpoint_that_does_not_stream_is_understood():
    with asking(Turn(text="plain", reasoning="why", fault="plain")) as (_, client):
        reply = ask(client)
    assert (reply.text, reply.reasoning) == ("plain", "why")
    assert reply.usage.prompt == 100


def test_a_long_silence_with_signs_of_life_does_not_end_a_call():
    with asking(Turn(text="late", keep_alives=15), idle_s=0.15) as (_, client):
        assert ask(client).text == "late"


def test_a_missing_package_is_one_line_with_the_remedy(monkeypatch):
    monkeypatch.setitem(openai_client.sys.modules, "openai", None)
    endpoint = Endpoint(preset=find_preset("vllm"), preset_name="vllm", model="m", key=Secret(""))
    with pytest.raises(ToolMissing, match=r"pip install 'hotloop\[model\]'"):
        OpenAIModel(endpoint)


def test_prompts_are_checked_and_hashed_by_content():
    assert prompt("a").id == prompt("a").id != prompt("b").id
    assert prompt("a", temperature=0.1).id != prompt("a").id
    with pytest.raises(ValueError, match="last message"):
        type(prompt())(messages=())
    with pytest.raises(ValueError, match="max_tokens"):
        prompt("a", max_tokens=0)
    assert KEY.text == "0123456789abcdef-a0001-s0"
