"""Records survive JSON unchanged, and what is no record is refused with its place."""

import json
import math

import pytest

from hotloop.core.attempt import Budget, RunSpec
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.graph import Arg, AttentionSpec, Graph, Node
from hotloop.core.problem import Policy, Problem, ProblemKind, Role, Workload
from hotloop.core.record import digest, dumps, from_json, to_json

GRAPH = Graph(
    nodes=(
        Node(name="score", op="score"),
        Node(name="two", op="mul", args=(Arg(node="score"), Arg(value=2.0)), attrs={"k": [1]}),
    ),
    outputs=("two",),
)
RECORDS = [
    Candidate(language="triton", sources=(SourceFile(path="kernel.py", text="x = 'é'"),)),
    Problem(
        name="p",
        kind=ProblemKind.NATIVE,
        source="",
        settings={"S": 3, "scale": 0.5},
        policy=Policy(precision="strict"),
        workloads=(Workload(name="nominal", role=Role.NOMINAL),),
    ),
    AttentionSpec(
        B=1, H=2, Hkv=1, S=8, Skv=9, D=16, dtype="float32", scale=0.25, score_mod=GRAPH
    ),
    RunSpec(
        problem_id="a",
        problem_name="b",
        generator="builtin",
        strategy="tune",
        device="cpu",
        language="triton",
        budget=Budget(wall_s=1),
        seed=0,
    ),
]  # fmt: skip


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_a_record_survives_json(record):
    text = json.dumps(to_json(record))
    assert from_json(type(record), json.loads(text)) == record


def test_an_unknown_field_is_refused_with_its_name():
    data = to_json(RECORDS[0]) | {"colour": 1}
    with pytest.raises(ValueError, match="colour"):
        from_json(Candidate, data)


@pytest.mark.parametrize(
    ("field", "value"), [("language", 3), ("sources", "text"), ("sources", [{"path": 1}])]
)
def test_a_value_of_another_type_is_refused_with_its_place(field, value):
    data = to_json(RECORDS[0]) | {field: value}
    with pytest.raises(ValueError, match=f"Candidate.{field}"):
        from_json(Candidate, data)


def test_a_missing_field_is_refused():
    data = to_json(RECORDS[0])
    del data["sources"]
    with pytest.raises(ValueError, match="sources"):
        from_json(Candidate, data)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_json_lacks_is_refused(value):
    with pytest.raises(ValueError, match="finite"):
        dumps({"x": value})


def test_half_a_surrogate_pair_becomes_text_that_can_be_stored():
    assert dumps({"a": "x\ud800y"}) == '{"a":"x?y"}'
    assert dumps({"a": "\U0001f600ü"}) == '{"a":"\U0001f600ü"}'
    assert len(digest(["\udfff"])) == 16


def test_true_is_no_integer():
    data = to_json(RECORDS[3]) | {"seed": True}
    with pytest.raises(ValueError, match="seed"):
        from_json(RunSpec, data)


def test_the_digest_follows_content_not_order():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 2})


def test_a_candidate_is_its_content():
    same = Candidate(language="triton", sources=RECORDS[0].sources)
    pinned = Candidate(language="triton", sources=RECORDS[0].sources, pins={"BLOCK": 64})
    assert same.id == RECORDS[0].id
    assert pinned.id != same.id


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("seed", True, "RunSpec.seed: expected int, got bool"),
        ("seed", 1.0, "RunSpec.seed: expected int, got float"),
        ("budget", {"wall_s": "1"}, "RunSpec.budget.wall_s: expected float, got str"),
        ("budget", {"wall": 1.0}, "unknown fields"),
        ("budget", [1.0], "RunSpec.budget: expected an object, got list"),
        ("options", [], "RunSpec.options: expected an object, got list"),
        ("device", None, "RunSpec.device: expected str, got NoneType"),
    ],
)
def test_what_is_refused_is_refused_at_its_place(field, value, told):
    with pytest.raises(ValueError, match=told.replace(".", r"\.")):
        from_json(RunSpec, to_json(RECORDS[3]) | {field: value})


def test_whole_numbers_stand_for_floats_and_only_for_them():
    assert from_json(Budget, {"wall_s": 3}).wall_s == 3.0
    assert isinstance(from_json(Budget, {"wall_s": 3}).wall_s, float)
    with pytest.raises(ValueError, match="wall_s"):
        from_json(Budget, {"wall_s": True})
