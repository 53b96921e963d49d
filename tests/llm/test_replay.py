import json
from contextlib import suppress
from dataclasses import replace

import pytest
from asking import KEY, ask, prompt

from hotloop.core.model import CallKey, Finish, Reply, Usage
from hotloop.errors import ConfigError, NotRecorded, ProviderError, Refused
from hotloop.llm.recording import (
    RecordedCall,
    RecordedError,
    Recording,
    read_recording,
    write_recording,
)
from hotloop.llm.replay import ReplayModel

REPLY = Reply(
    text="x = 1 \U0001f600",
    reasoning="why",
    finish=Finish.STOP,
    usage=Usage(prompt=3, completion=4),
    cost_usd=0.5,
    model="m",
    seconds=2.0,
    raw={"id": "1"},
)
FAILED_KEY = replace(KEY, attempt=2)
CALLS = (
    RecordedCall(key=KEY, prompt_id=prompt("a").id, prompt=prompt("a"), reply=REPLY),
    RecordedCall(
        key=FAILED_KEY, prompt_id="0" * 16, error=RecordedError(kind="Refused", message="no")
    ),
)
RECORDING = Recording(model="m", problems={KEY.problem_id: "attention/causal"}, calls=CALLS)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "calls.jsonl"
    write_recording(path, RECORDING)
    return path


def test_a_recording_comes_back_as_it_was(path):
    assert read_recording(path) == RECORDING
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_call_is_found_by_its_key(path):
    model = ReplayModel(path)
    assert ask(model, "a") == REPLY
    assert model.summary() is None


def test_prompts_that_differ_are_counted_in_one_line(path):
    model = ReplayModel(path)
    for _ in range(2):
        assert ask(model, "another") == REPLY
    assert model.summary().startswith("1 of 1 prompts differ")


def test_a_failure_is_played_as_the_same_error(path):
    with pytest.raises(Refused, match="no"):
        ask(ReplayModel(path), key=FAILED_KEY)


def test_an_error_of_another_version_is_still_a_providers(path):
    error = RecordedError(kind="SystemExit", message="no")
    write_recording(path, replace(RECORDING, calls=(replace(CALLS[1], error=error),)))
    with pytest.raises(ProviderError):
        ask(ReplayModel(path), key=FAILED_KEY)


def test_the_recording_of_another_problem_is_one_clear_error(path):
    model = ReplayModel(path)
    other = CallKey(problem_id="f" * 16, attempt=1)
    for refuse in (lambda: model.check_problem("f" * 16), lambda: ask(model, key=other)):
        with pytest.raises(ConfigError, match="attention/causal.*not of problem ffffffffffffffff"):
            refuse()
    model.check_problem(KEY.problem_id)


@pytest.mark.parametrize("changes", [{"attempt": 9}, {"sample": 1}, {"part": 1}])
def test_a_call_that_was_not_recorded_is_told(path, changes):
    with pytest.raises(NotRecorded, match="ends before call"):
        ask(ReplayModel(path), key=replace(KEY, **changes))


MADE = {"strategy": "refine", "parallel": 1, "language": "triton", "start": "0123"}


def asked_for(path, *keys):
    model = ReplayModel(path)
    for key in keys:
        with suppress(ProviderError):
            ask(model, "a", key=key)
    return model


@pytest.mark.parametrize("known", [True, False])
def test_a_search_that_asks_for_other_calls_is_told_with_the_options(path, known):
    options = {KEY.problem_id: MADE} if known else {}
    write_recording(path, replace(RECORDING, options=options))
    assert read_recording(path).options == options
    third = replace(KEY, attempt=3)
    told = asked_for(path, KEY, third).unplayed(KEY.problem_id, ())
    assert told.startswith(f"1 of 2 calls in {path} were not played")
    assert third.text in told
    made = "--strategy refine --parallel 1 --language triton and the same --start"
    assert (f"it was made with {made}" in told) is known
    assert ("does not say its --strategy" in told) is not known


def test_a_recording_that_ends_or_is_cut_short_is_no_complaint(path):
    third = replace(KEY, attempt=3)
    for keys, settled in (((KEY, FAILED_KEY, third), ()), ((KEY,), ()), ((third,), CALLS)):
        model = asked_for(path, *keys)
        assert model.unplayed(KEY.problem_id, {call.key for call in settled}) is None


def test_options_of_a_form_that_is_not_known_are_none(path):
    header = json.loads(path.read_text().splitlines()[0])
    for found in (["x"], {KEY.problem_id: 3}, {KEY.problem_id: {"strategy": {"a": 1}}}):
        damage(path, 0, json.dumps({**header, "options": found}))
        assert read_recording(path).made_with(KEY.problem_id) == ""


def damage(path, number, line):
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[number] = line
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize(
    ("number", "line", "message"),
    [
        (0, "{}", "another kind of file"),
        (0, "no json", "another kind of file"),
        (0, '{"format": "hotloop-recording", "version": 99}', "version 99"),
        (0, '{"format": "hotloop-recording", "version": 1, "problems": {}}', "damaged"),
        (1, '{"key": 1}', "line 2"),
        (2, '{"key": {"probl', "line 3"),
    ],
)
def test_a_damaged_recording_is_told_with_its_line(path, number, line, message):
    damage(path, number, line)
    with pytest.raises(ConfigError, match=message):
        ReplayModel(path)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_what_is_no_recording_is_refused(tmp_path, content):
    path = tmp_path / "none.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"none\.jsonl"):
        ReplayModel(path)


@pytest.mark.parametrize(
    "calls", [(CALLS[0], CALLS[0]), (replace(CALLS[0], key=replace(KEY, problem_id="x")),)]
)
def test_a_recording_that_could_not_be_played_is_not_written(tmp_path, calls):
    with pytest.raises(ValueError, match="0123456789abcdef|x-a0001"):
        write_recording(tmp_path / "bad.jsonl", replace(RECORDING, calls=calls))
    assert list(tmp_path.iterdir()) == []
