import json

import pytest

from hotloop.cli import checks, model_check
from hotloop.cli.main import main
from hotloop.cli.model_check import check_model, report_text
from hotloop.core.model import CallKey, Reply
from hotloop.errors import ConfigError
from hotloop.llm.recording import RecordedCall, Recording, write_recording
from hotloop.llm.retry import RetryPolicy
from hotloop.testing.model_server import ModelServer, Turn

KEY = "sk-very-secret-1234567890"
ENVIRON = {"DEEPSEEK_API_KEY": KEY}


def checked(*turns, environ=ENVIRON, deadline_s=10.0, spec="deepseek:deepseek-v4-pro"):
    with ModelServer(*turns) as server:
        report = check_model(f"{spec}@{server.url}", environ, deadline_s=deadline_s)
        return report, report_text(report), server.asked


def test_a_model_that_answers_is_reported_with_what_it_counts():
    report, text, asked = checked(Turn(text="OK", reasoning="One word, then."))
    assert report.ok
    assert len(asked) == 1
    assert asked[0].body["max_tokens"] <= 512
    assert report.facts["answered by"] == "scripted"
    assert report.facts["tokens"]["completion"] == "50"
    assert report.facts["reasoning"].startswith("seen")
    assert "this model can be used" in text
    assert KEY not in text


def test_what_the_endpoint_does_not_say_is_unknown_and_never_0():
    report, text, _ = checked(Turn(text="OK", usage=None))
    assert set(report.facts["tokens"].values()) == {"unknown"}
    assert report.facts["cost of this call"] == "unknown"
    assert report.facts["reasoning"] == "not seen"
    assert "price" in text
    assert "--max-tokens" in report.facts["price"]  # another URL: the preset's price is not its


def test_a_model_that_thinks_to_the_end_of_its_tokens_is_reachable():
    report, _, _ = checked(Turn(text="", reasoning="hm " * 40, finish="length"))
    assert report.ok
    assert "still thinking" in report.facts["answer"]


@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (Turn(status=401, error={"message": f"bad key {KEY}"}), "variable"),
        (Turn(status=404, error={"message": "no such model"}), "name"),
        (Turn(status=402, error={"message": "pay"}), "credit"),
        (Turn(fault="html"), "/v1"),
    ],
)
def test_each_failure_is_one_line_with_what_to_do(turn, words):
    report, text, _ = checked(turn)
    assert not report.ok
    assert report.facts == {"reachable": False}
    assert "\n" not in report.problem
    assert words in f"{report.problem} {report.mend}"
    assert "cannot be used yet" in text
    assert KEY not in text


def test_a_silent_endpoint_ends_at_the_deadline():
    report, _, _ = checked(Turn(text="OK", pause_s=5.0), deadline_s=0.3)
    assert not report.ok
    assert "0.3 s" in report.problem


def test_nobody_at_the_url_is_a_finding():
    with ModelServer(Turn()) as server:
        url = server.url
    report = check_model(f"deepseek:x@{url}", ENVIRON, deadline_s=0.5)
    assert not report.ok
    assert report.mend


def test_a_missing_key_names_its_variable():
    report = check_model("deepseek:deepseek-v4-pro", {})
    assert not report.ok
    assert "DEEPSEEK_API_KEY" in report.problem


def test_an_unknown_preset_is_a_mistake_of_the_user(capsys):
    with pytest.raises(ConfigError, match="no model preset"):
        check_model("nowhere:x", {})
    assert main(["doctor", "--model", "nowhere:x"]) == 2
    assert "known:" in capsys.readouterr().err


def test_a_folder_is_looked_at_and_explained(tmp_path):
    report = check_model(f"dir:{tmp_path / 'answers'}", {})
    assert report.ok
    assert "ID.reply.md" in report.facts["how to answer"]
    (tmp_path / "file").write_text("")
    blocked = check_model(f"dir:{tmp_path / 'file'}", {})
    assert not blocked.ok
    assert "folder" in blocked.problem


def test_a_recording_names_its_problems(tmp_path):
    path = tmp_path / "calls.jsonl"
    call = RecordedCall(
        key=CallKey(problem_id="p1", attempt=1), prompt_id="x", reply=Reply(text="")
    )
    write_recording(
        path, Recording(model="some-model", problems={"p1": "attention/causal"}, calls=(call,))
    )
    report = check_model(f"replay:{path}", {})
    assert report.ok
    assert report.facts["problems"] == ["attention/causal (p1)"]
    assert not check_model(f"replay:{tmp_path / 'none'}", {}).ok


def test_the_command_writes_one_json_object(monkeypatch, capsys):
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    with ModelServer(Turn(text="OK")) as server:
        assert main(["doctor", "--model", f"deepseek:x@{server.url}", "--json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["ok"] is True
    assert KEY not in found.out + found.err


def test_the_presets_with_a_key_are_listed_by_name_only():
    found = checks.model_keys({"OPENAI_API_KEY": KEY, "NVIDIA_API_KEY": " "}).found
    assert "openai (OPENAI_API_KEY)" in found
    assert "set: openai (OPENAI_API_KEY);" in found
    assert KEY not in found
    assert "none set" in checks.model_keys({}).found


@pytest.mark.parametrize(
    ("turn", "code"),
    [
        (Turn(text="OK"), 0),
        (Turn(status=402, error={"message": "pay"}), 3),
        (Turn(status=401, error={"message": "bad key"}), 2),
    ],
)
def test_the_exit_code_says_who_is_at_fault(monkeypatch, capsys, turn, code):
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    with ModelServer(turn) as server:
        assert main(["doctor", "--model", f"deepseek:x@{server.url}"]) == code
    assert ("cannot be used yet" in capsys.readouterr().out) is (code != 0)


def test_a_model_that_is_not_there_is_no_success(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(model_check, "RETRY", RetryPolicy(max_retries=0))
    assert main(["doctor", "--model", "vllm:m@http://127.0.0.1:9/v1"]) == 3
    assert main(["doctor", "--model", f"replay:{tmp_path / 'none'}"]) == 2
    assert main(["doctor", "--model", f"dir:{tmp_path / 'answers'}"]) == 0
    assert capsys.readouterr().out.count("cannot be used yet") == 2
