"""Ask a scripted server, as the tests do."""

import threading
import time
from contextlib import contextmanager

import pytest

from hotloop.core.model import CallKey, Message, Prompt, Role
from hotloop.llm.openai_client import Endpoint, OpenAIModel
from hotloop.llm.presets import find_preset
from hotloop.llm.retry import RetryPolicy
from hotloop.llm.secrets import Secret
from hotloop.testing.model_server import ModelServer

PLANTED_KEY = "sk-planted-0123456789abcdef"
KEY = CallKey(problem_id="0123456789abcdef", attempt=1)
NO_RETRY = RetryPolicy(max_retries=0)
QUICK = RetryPolicy(max_retries=3, first_wait_s=0.02, longest_wait_s=0.1)


def prompt(text="Write a kernel.", **changes):
    return Prompt(messages=(Message(role=Role.USER, text=text),), **changes)


@contextmanager
def asking(*turns, preset="vllm", model="scripted", **options):
    """Yield a scripted server and a model that asks it."""
    pytest.importorskip("openai")
    options = {"retry": NO_RETRY, "idle_s": 5.0, **options}
    with ModelServer(*turns) as server:
        endpoint = Endpoint(
            preset=find_preset(preset),
            preset_name=preset,
            model=model,
            key=Secret(PLANTED_KEY),
            url=server.url,
        )
        client = OpenAIModel(endpoint, **options)
        try:
            yield server, client
        finally:
            client.close()
    assert no_reader_is_left()


def ask(client, text="Write a kernel.", *, deadline_s=10.0, key=KEY, **changes):
    return client.complete(prompt(text, **changes), key=key, deadline_s=deadline_s)


def no_reader_is_left(patience_s=2.0):
    """Whether every thread that reads an answer has ended, or does so soon."""
    end_s = time.monotonic() + patience_s
    while time.monotonic() < end_s:
        if not any(t.name == "model-call" for t in threading.enumerate()):
            return True
        time.sleep(0.005)
    return False
