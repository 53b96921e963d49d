"""Calls that are given up from another thread."""

import threading
import time
from dataclasses import replace

import pytest
from asking import KEY, QUICK, ask, asking

from hotloop.core.model import Finish
from hotloop.errors import Cancelled
from hotloop.llm.continuing import ContinuingModel
from hotloop.llm.directory import DirectoryModel
from hotloop.testing.model_server import Turn

SILENT = Turn(text="some text", fault="silent")
LIMITED = Turn(status=429, headers={"Retry-After": "5"})
LATE = Turn(text="x = 1", pause_s=5.0)


def soon(action, *args):
    timer = threading.Timer(0.08, action, args)
    timer.start()
    return timer


@pytest.mark.parametrize("turn", [SILENT, LIMITED, LATE], ids=["silent", "limited", "late"])
@pytest.mark.parametrize("how", ["cancel", "close"])
def test_a_waiting_call_wakes_at_once(turn, how):
    with asking(turn, retry=QUICK) as (_, client):
        started = time.monotonic()
        timer = soon(*((client.cancel, KEY) if how == "cancel" else (client.close,)))
        with pytest.raises(Cancelled, match=KEY.text):
            ask(client)
        assert time.monotonic() - started < 4.0  # what it waits for takes longer
        timer.join()


def test_the_endpoint_is_hung_up_on():
    with asking(SILENT) as (server, client):
        timer = soon(client.cancel, KEY)
        with pytest.raises(Cancelled):
            ask(client)
        assert server.hung_up.wait(20.0)
        timer.join()


def test_another_call_goes_on_and_the_same_key_may_be_asked_again():
    slow = Turn(text="x = 1", keep_alives=10)
    with asking(slow) as (_, client):
        timer = soon(client.cancel, replace(KEY, sample=1))
        assert ask(client).text == "x = 1"
        timer.join()
    with asking(SILENT, Turn(text="x = 2")) as (_, client):
        timer = soon(client.cancel, KEY)
        with pytest.raises(Cancelled):
            ask(client)
        timer.join()
        assert ask(client).text == "x = 2"


def test_a_cancelled_continuation_leaves_the_first_part():
    with asking(Turn(text="half", finish="length"), SILENT) as (_, client):
        model = ContinuingModel(client)
        timer = soon(model.cancel, KEY)
        reply = ask(model)
        timer.join()
    assert (reply.text, reply.finish) == ("half", Finish.LENGTH)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_waiting_for_a_folder_ends(tmp_path, how):
    model = DirectoryModel(tmp_path, poll_s=5.0)
    timer = soon(*((model.cancel, KEY) if how == "cancel" else (model.close,)))
    with pytest.raises(Cancelled):
        ask(model)
    timer.join()


def test_a_closed_model_is_not_asked(tmp_path):
    with asking(Turn(text="x = 1")) as (server, client):
        client.close()
        with pytest.raises(Cancelled, match="closed"):
            ask(client)
        assert server.asked == []
