import json

import pytest
from model_run import write_run

from hotloop.cli.attempt_text import _evidence
from hotloop.cli.main import main
from hotloop.core.verdict import Evidence


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("model")).folder


def shown(capsys, *args):
    assert main(["show", *map(str, args)]) == 0
    return capsys.readouterr().out


def test_the_table_says_what_each_attempt_was_to_do(run, capsys):
    lines = shown(capsys, run).splitlines()
    rows = {line.split()[0]: line for line in lines if line[:1].isdigit()}
    assert "draft" in rows["1"]
    assert "keep K in shared memory" in rows["1"]
    assert rows["2"].split()[1:3] == ["repair", "1"]
    assert "larger tile" in rows["2"]
    assert "NO_CODE" in rows["3"]
    assert "waiting" in rows["4"]


def test_the_totals_say_unknown_where_one_call_did_not_count(run, capsys):
    text = shown(capsys, run)
    assert "calls: 3, answered in 36 s together, tokens unknown, dollars unknown" in text
    assert "answers say: some-model" in text
    record = json.loads(shown(capsys, run, "--json"))
    assert record["calls"]["calls"] == 3
    assert record["calls"]["tokens"] is None
    assert record["calls"]["answered_by"] == ["some-model"]


def test_a_run_that_waits_names_the_files(run, capsys):
    text = shown(capsys, run)
    assert "waiting for answers from outside: 1\n  answers/4.prompt.md" in text
    assert json.loads(shown(capsys, run, "--json"))["waiting"] == ["answers/4.prompt.md"]


def test_an_attempt_has_its_verdict_and_the_whole_evidence(run, capsys):
    text = shown(capsys, run, "--attempt", 1)
    assert "INCORRECT_NUMERICAL" in text
    assert "  log       " in text
    assert "line 3" in text
    assert "BLOCK = 16" in text


def test_prompt_and_reply_are_those_of_the_attempt(run, capsys):
    text = shown(capsys, run, "--attempt", 1, "--prompt", "--reply")
    assert "Write a kernel for 'relative'." in text
    assert "KERNEL ONE" in text
    assert "First I think." in text
    assert "tokens 150, dollars unknown" in text
    assert "BLOCK = 16" not in text  # the parts that were asked for, not the source
    other = shown(capsys, run, "--attempt", 2, "--prompt")
    assert "repair it" in other
    assert "fixed" not in other


def test_an_unanswered_prompt_says_what_is_awaited(run, capsys):
    text = shown(capsys, run, "--attempt", 4, "--reply")
    assert "no reply: Pending: answers/4.prompt.md awaits an answer" in text


def test_a_diff_is_against_the_parent(run, capsys):
    text = shown(capsys, run, "--attempt", 2, "--diff")
    assert "-BLOCK = 16" in text
    assert "+BLOCK = 32" in text
    assert "no difference" in shown(capsys, run, "--attempt", 3, "--diff")  # a draft has no parent


def test_no_control_character_of_a_reply_reaches_the_terminal(run, capsys):
    text = shown(capsys, run) + shown(capsys, run, "--attempt", 1, "--prompt", "--reply", "--diff")
    assert "KERNEL ONE" in text
    assert "\x1b" not in text


def test_json_of_one_attempt_has_prompts_and_replies(run, capsys):
    record = json.loads(shown(capsys, run, "--attempt", 2, "--prompt", "--reply", "--json"))
    assert record["prompts"] == ["It is wrong: repair it."]
    assert record["replies"][0]["text"] == "fixed"
    assert record["replies"][0]["usage"]["prompt"] is None


def test_details_are_told_without_the_marks_of_json():
    details = {"evenness": 0.9914804764945551, "patterns": [], "ratio": {"median": 1.5, "n": 3},
               "worst_index": [1, 2], "log": "one\ntwo"}  # fmt: skip
    lines = _evidence(Evidence(kind="wrong", message="wrong", details=details))
    assert lines == [
        "  evenness          0.9915",
        "  ratio             median 1.5, n 3",
        "  worst_index       1, 2",
        "log:",
        "    one",
        "    two",
    ]
