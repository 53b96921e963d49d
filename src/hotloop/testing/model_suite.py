"""ModelSuite: what every model has to do."""

# ruff: noqa: D102  the name of a test says what it checks

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.model import CallKey, Message, Model, Prompt, Reply, Role
from hotloop.core.record import dumps, from_json, to_json

DEADLINE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """One call with the text that the model has to answer it with."""

    key: CallKey
    prompt: Prompt
    text: str


SCRIPT: Sequence[ScriptedCall] = tuple(
    ScriptedCall(
        key=CallKey(problem_id="0123456789abcdef", attempt=attempt, sample=sample),
        prompt=Prompt(
            messages=(
                Message(role=Role.SYSTEM, text="You write kernels."),
                Message(role=Role.USER, text=f"question {attempt}.{sample} \u00fc"),
            )
        ),
        text=f"Here it is:\n\n```python\nanswer = '{attempt}.{sample} \u00fc \U0001f600'\n```\n",
    )
    for attempt in (1, 2, 3)
    for sample in (0, 1)
)


class ModelSuite:
    """What every model has to do."""

    def make(self, folder: Path, script: Sequence[ScriptedCall]) -> Any:
        """Return a model that answers the script; `folder` is free for it to use."""
        raise NotImplementedError("a subclass of ModelSuite returns its model here")

    @pytest.fixture
    def model(self, tmp_path: Path) -> Any:
        """Return a model that answers SCRIPT."""
        model = self.make(tmp_path, SCRIPT)
        yield model
        model.close()

    def test_it_has_a_name_of_one_line(self, model: Model) -> None:
        assert model.name.strip() == model.name != ""
        assert len(model.name.splitlines()) == 1
        assert isinstance(model.paid, bool)

    def test_it_answers_each_call_with_its_own_text(self, model: Model) -> None:
        assert [ask(model, call).text for call in SCRIPT] == [call.text for call in SCRIPT]

    def test_calls_of_several_threads_do_not_mix(self, model: Model) -> None:
        with ThreadPoolExecutor(len(SCRIPT)) as pool:
            replies = list(pool.map(lambda call: ask(model, call), SCRIPT))
        assert [reply.text for reply in replies] == [call.text for call in SCRIPT]

    def test_a_reply_survives_the_journal(self, model: Model) -> None:
        reply = ask(model, SCRIPT[0])
        assert from_json(Reply, to_json(reply)) == reply
        assert dumps(reply).encode()

    def test_unknown_counts_and_costs_are_absent(self, model: Model) -> None:
        reply = ask(model, SCRIPT[0])
        counts = (reply.usage.prompt, reply.usage.completion, reply.cost_usd)
        assert all(count is None or count > 0 for count in counts)

    def test_it_says_who_answered_and_how_long_it_took(self, model: Model) -> None:
        reply = ask(model, SCRIPT[0])
        assert reply.model
        assert 0 <= reply.seconds <= DEADLINE_S

    def test_a_call_that_is_not_under_way_cannot_be_cancelled(self, model: Model) -> None:
        model.cancel(SCRIPT[0].key)
        assert ask(model, SCRIPT[0]).text == SCRIPT[0].text

    def test_closing_twice_is_closing(self, model: Model) -> None:
        model.close()
        model.close()


def ask(model: Model, call: ScriptedCall) -> Reply:
    """Ask one call of the script."""
    return model.complete(call.prompt, key=call.key, deadline_s=DEADLINE_S)
