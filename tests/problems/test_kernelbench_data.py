import json

import pytest

from hotloop.core.problem import ProblemKind
from hotloop.errors import ConfigError
from hotloop.problems import is_kernelbench_name, list_kernelbench, load_problem_spec

CODE = "N = 4\nclass Model: ...\n"


@pytest.fixture
def jsonl(tmp_path):
    rows = [
        {"level": 1, "problem_id": i, "name": f"{i}_P", "code": f"{CODE}# {i}\n"} for i in (19, 2)
    ]
    path = tmp_path / "kernelbench.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in rows) + "\n")
    return path


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "KernelBench"
    for level, name in ((1, "19_ReLU"), (2, "1_Conv"), (2, "notes")):
        (root / f"level{level}").mkdir(parents=True, exist_ok=True)
        (root / f"level{level}" / f"{name}.py").write_text(CODE)
    return root


def test_a_problem_is_found_by_number(jsonl, checkout):
    for data in (jsonl, jsonl.parent):
        problem = load_problem_spec("kernelbench/1/19", device="cuda", data=data)
        assert problem.name == "kernelbench/1/19"
        assert problem.kind is ProblemKind.KERNELBENCH
        assert problem.source.endswith("# 19\n")
        assert problem.policy.library_calls == "anchored"
        assert problem.policy.shape_scope == "nominal"
    assert load_problem_spec("kernelbench/2/1", device="cuda", data=checkout).source == CODE


def test_entries_are_in_order(jsonl, checkout):
    assert [e.name for e in list_kernelbench(jsonl)] == ["kernelbench/1/2", "kernelbench/1/19"]
    assert [(e.name, e.title) for e in list_kernelbench(checkout)] == [
        ("kernelbench/1/19", "19_ReLU"),
        ("kernelbench/2/1", "1_Conv"),
    ]


def test_settings_are_checked_against_the_code(jsonl):
    problem = load_problem_spec("kernelbench/1/2", device="cpu", data=jsonl, settings={"N": 8})
    assert problem.settings == {"N": 8}
    with pytest.raises(ConfigError, match="no constant K"):
        load_problem_spec("kernelbench/1/2", device="cpu", data=jsonl, settings={"K": 8})


def test_names():
    assert is_kernelbench_name("kernelbench/1/19")
    assert not is_kernelbench_name("kernelbench/1")
    assert not is_kernelbench_name("dir/kernelbench/1/19.py")


def test_missing_data_is_explained(jsonl, tmp_path):
    with pytest.raises(ConfigError, match="need --data PATH"):
        load_problem_spec("kernelbench/1/19", device="cuda")
    with pytest.raises(ConfigError, match="no such file or folder"):
        load_problem_spec("kernelbench/1/19", device="cuda", data=tmp_path / "none")
    with pytest.raises(ConfigError, match="level 1 has 2 to 19"):
        load_problem_spec("kernelbench/1/20", device="cuda", data=jsonl)
    with pytest.raises(ConfigError, match=r"it has levels \[1\]"):
        load_problem_spec("kernelbench/3/1", device="cuda", data=jsonl)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="found none"):
        load_problem_spec("kernelbench/1/20", device="cuda", data=tmp_path / "empty")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: expected one JSON object a line"),
        ("[]", "line 1: expected int in field 'level', got None"),
        ('{"level": 1, "problem_id": "2"}', "expected int in field 'problem_id', got '2'"),
    ],
)
def test_damaged_data_is_refused_with_its_line(tmp_path, line, message):
    path = tmp_path / "kb.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ConfigError, match=message):
        list_kernelbench(path)
