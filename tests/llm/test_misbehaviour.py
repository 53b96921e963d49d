"""A real server that misbehaves on purpose, one test for each way."""

import socket
import threading
import time

import pytest
from asking import NO_RETRY, PLANTED_KEY, QUICK, ask, asking

from hotloop import errors
from hotloop.llm.openai_client import Endpoint, OpenAIModel
from hotloop.llm.presets import find_preset
from hotloop.llm.secrets import Secret
from hotloop.testing.model_server import Turn

GOOD = Turn(text="x = 1, and some more text")


@pytest.mark.parametrize(
    "bad",
    [
        Turn(status=429, headers={"Retry-After": "0"}),
        Turn(status=500),
        Turn(status=503),
        Turn(text="some text that is cut", fault="reset"),
        Turn(text="some text that is cut", fault="early_end"),
        Turn(fault="empty_choices"),
        Turn(),
        Turn(text="some text", fault="broken_json"),
        Turn(fault="plain", error={"message": "overloaded", "code": 503}),
        Turn(fault="error_event", error={"message": "upstream"}),
        Turn(fault="html"),
    ],
    ids=lambda t: f"{t.status}-{t.fault}",
)
def test_a_passing_fault_is_retried_and_counted(bad):
    with asking(bad, GOOD, retry=QUICK) as (server, client):
        reply = ask(client)
    assert reply.text == GOOD.text
    assert reply.retries == 1
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (Turn(status=500), errors.EndpointDown),
        (Turn(status=429), errors.RateLimited),
        (Turn(text="cut in the middle", fault="reset"), errors.EndpointDown),
        (Turn(text="cut in the middle", fault="early_end"), errors.EndpointDown),
        (Turn(fault="empty_choices"), errors.BadReply),
        (Turn(), errors.BadReply),
        (Turn(text="some text", fault="broken_json"), errors.BadReply),
        (Turn(fault="plain", error={"message": "strange"}), errors.BadReply),
        (Turn(fault="error_event", error={"code": "rate_limit_exceeded"}), errors.RateLimited),
        (Turn(fault="html"), errors.BadReply),
        (Turn(status=418), errors.BadReply),
    ],
    ids=lambda v: f"{v.status}-{v.fault}" if isinstance(v, Turn) else v.__name__,
)
def test_a_lasting_fault_is_told_by_its_type_in_one_line(bad, expected):
    with asking(bad, retry=NO_RETRY) as (_, client), pytest.raises(expected) as caught:
        ask(client)
    assert type(caught.value) is expected
    assert str(caught.value).startswith(client.name)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("status", "error", "expected", "exit_code"),
    [
        (401, {"message": "wrong key"}, errors.AuthError, 2),
        (403, {"message": "no"}, errors.AuthError, 2),
        (402, {"message": "pay"}, errors.QuotaExhausted, 3),
        (429, {"message": "pay", "code": "insufficient_quota"}, errors.QuotaExhausted, 3),
        (404, {"message": "which?"}, errors.UnknownModel, 2),
        (400, {"message": "long", "code": "context_length_exceeded"}, errors.ContextOverflow, 3),
        (413, {"message": "long"}, errors.ContextOverflow, 3),
        (400, {"message": "no", "code": "content_policy_violation"}, errors.Refused, 3),
        (400, {"message": "no", "param": "messages"}, errors.RequestRejected, 3),
        (422, {"message": "no"}, errors.RequestRejected, 3),
    ],
)
def test_what_waiting_cannot_cure_is_asked_once(status, error, expected, exit_code):
    with asking(Turn(status=status, error=error), retry=QUICK) as (server, client):
        with pytest.raises(expected, match=error["message"]) as caught:
            ask(client)
        assert type(caught.value) is expected
        assert caught.value.exit_code == exit_code
        assert len(server.asked) == 1


def test_retry_after_is_waited_for():
    limited = Turn(status=429, headers={"Retry-After": "0.4"})
    with asking(limited, GOOD, retry=QUICK) as (server, client):
        assert ask(client).retries == 1
    assert server.asked[1].at_s - server.asked[0].at_s >= 0.4


def test_a_retry_after_past_the_deadline_is_not_slept_away():
    limited = Turn(status=429, headers={"Retry-After": "3600"})
    with asking(limited, GOOD, retry=QUICK) as (server, client):
        started = time.monotonic()
        with pytest.raises(errors.RateLimited, match="3600") as caught:
            ask(client, deadline_s=60.0)
        assert time.monotonic() - started < 30.0
        assert caught.value.retry_after_s == 3600.0
        assert len(server.asked) == 1


def test_an_hour_is_not_waited_for_even_without_a_deadline():
    limited = Turn(status=429, headers={"Retry-After": "3600"})
    raises = pytest.raises(errors.RateLimited, match="3600")
    with asking(limited, GOOD, retry=QUICK) as (_, client), raises:
        ask(client, deadline_s=None)


def test_retries_end():
    with asking(Turn(status=500), retry=QUICK) as (server, client):
        with pytest.raises(errors.EndpointDown):
            ask(client)
        assert len(server.asked) == 1 + QUICK.max_retries


def test_answers_that_may_be_paid_are_retried_less_often():
    with asking(Turn(fault="empty_choices"), retry=QUICK) as (server, client):
        with pytest.raises(errors.BadReply):
            ask(client)
        assert len(server.asked) == 1 + QUICK.max_bad_replies


@pytest.mark.parametrize("fault", ["drip", "silent"])
def test_a_server_without_signs_of_life_is_left_and_hung_up_on(fault):
    turn = Turn(text="some text", fault=fault)
    with asking(turn, idle_s=0.3) as (server, client):
        started = time.monotonic()
        with pytest.raises(errors.EndpointDown):
            ask(client)
        assert 0.25 < time.monotonic() - started < 20.0
        assert server.hung_up.wait(20.0)


@pytest.mark.parametrize("fault", ["drip", "silent"])
def test_the_deadline_holds_also_within_an_answer(fault):
    with asking(Turn(text="some text", fault=fault), idle_s=60.0) as (server, client):
        started = time.monotonic()
        with pytest.raises(errors.DeadlinePassed):
            ask(client, deadline_s=0.25)
        assert time.monotonic() - started < 20.0
        assert server.hung_up.wait(20.0)


def test_the_deadline_holds_before_the_first_byte():
    with asking(Turn(text="late", pause_s=5.0)) as (_, client):
        started = time.monotonic()
        with pytest.raises(errors.DeadlinePassed):
            ask(client, deadline_s=0.3)
        assert time.monotonic() - started < 4.0  # before it answers


def test_an_answer_of_ten_megabytes_is_cut_with_a_clear_error():
    with asking(Turn(fault="flood"), retry=QUICK) as (server, client):
        with pytest.raises(errors.ReplyTooLong, match="4,000,000 characters"):
            ask(client)
        assert len(server.asked) == 1


def test_one_endless_line_is_cut_too():
    turn = Turn(fault="endless_line")
    with asking(turn) as (_, client), pytest.raises(errors.ReplyTooLong, match="one line"):
        ask(client)


def test_an_endpoint_that_is_not_there_is_down():
    pytest.importorskip("openai")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    endpoint = Endpoint(
        preset=find_preset("vllm"), preset_name="vllm", model="m", key=Secret(""), url=url
    )
    client = OpenAIModel(endpoint, retry=NO_RETRY)
    with pytest.raises(errors.EndpointDown, match=url):
        ask(client)
    client.close()


def test_an_endpoint_that_speaks_something_else_is_down():
    pytest.importorskip("openai")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5.0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        endpoint = Endpoint(
            preset=find_preset("vllm"), preset_name="vllm", model="m", key=Secret(""), url=url
        )
        client = OpenAIModel(endpoint, retry=NO_RETRY)

        def greet():
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
                connection.recv(65536)

        greeter = threading.Thread(target=greet)
        greeter.start()
        with pytest.raises(errors.EndpointDown):
            ask(client)
        greeter.join()
        client.close()


@pytest.mark.parametrize(
    "turn",
    [
        Turn(status=401, error={"message": f"Incorrect key {PLANTED_KEY} provided"}),
        Turn(fault="error_event", error={"message": f"header: Bearer {PLANTED_KEY}"}),
        Turn(text="x", fault="plain", error={"message": PLANTED_KEY}),
    ],
)
def test_a_key_that_the_endpoint_quotes_is_in_no_error(turn, caplog):
    caplog.set_level("DEBUG")
    with asking(turn) as (_, client), pytest.raises(errors.ProviderError) as caught:
        ask(client)
    shown = "".join(
        (str(caught.value), repr(caught.value), repr(client), str(vars(client)), caplog.text)
    )
    assert PLANTED_KEY not in shown
    assert "[key]" in str(caught.value)


def test_a_key_that_the_endpoint_quotes_is_in_no_reply():
    turn = Turn(text=f"key {PLANTED_KEY}", reasoning=f"key {PLANTED_KEY}")
    with asking(turn) as (_, client):
        reply = ask(client)
    assert PLANTED_KEY not in repr(reply)
    assert reply.text == "key [key]"
