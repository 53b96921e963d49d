"""How `show` tells wrong values: in words, with nothing of the evidence left out of --json."""

import json
from dataclasses import replace

import pytest
from model_run import Scribe, plan_in

from hotloop.cli.main import main
from hotloop.cli.wrong_values import wrong_values
from hotloop.core.attempt import Action
from hotloop.core.record import to_json
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.store.sqlite import SqliteStore

DETAILS = {
    "workload": {"name": "odd", "role": "held_out", "settings": {"S": 37}},
    "output": "output0", "shape": [4, 64], "total": 256, "profile": "shipped", "rule": "bulk",
    "times_eager": 102754.3, "mismatches": 64, "box": [[3, 3], [0, 63]], "density": 1.0,
    "patterns": [{"dim": 0, "size": 4, "kind": "one", "at": 3}], "evenness": 0.9914804764945551,
    "ratio": {"median": 2.0, "spread": 1e-7, "share": 1.0}, "difference": None,
    "samples": [{"index": [3, 5], "got": "0.5", "expected": "0.25"}],
}  # fmt: skip


def verdict(status, details):
    return Verdict(
        status=status, stage=Stage.CORRECTNESS, message="m", candidate_id="c", problem_id="p",
        tier=Tier.FAST, device="cpu",
        evidence=Evidence(kind="wrong_values", message="the error is too large", details=details),
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("values")
    plan = plan_in(folder)
    with SqliteStore(plan.folder) as store:
        scribe = Scribe(store, plan)
        for number, details in enumerate((DETAILS, {"log": "line 1\nline 2", "odd": 3}), 1):
            opened = scribe.propose(number, Action.DRAFT)
            found = verdict(Status.INCORRECT_NUMERICAL, details)
            store.conclude(replace(opened, verdict=found, finished_s=1.0))
    return plan.folder


def shown(capsys, *args):
    assert main(["show", *map(str, args)]) == 0
    return capsys.readouterr().out


def test_wrong_values_are_told_in_words(run, capsys):
    text = shown(capsys, run, "--attempt", 1)
    for words in (
        "  wrong             output0 of shape [4, 64] is wrong on the problem's own inputs.\n",
        "                    64 of 256 elements (25%) are far off.\n",
        "only index 3 of 4 in dimension 0 (row)",
        "got / expected is 2 at the median",
        "  what it means     Off by one constant ratio",
        "  for example       [3, 5] got 0.5 expected 0.25\n",
        "  workload          name odd, role held_out, settings S 37\n",
    ):
        assert words in text
    for raw in ("evenness", "times_eager", "density", "patterns", "difference  "):
        assert raw not in text


def test_all_of_the_evidence_is_in_the_json(run, capsys):
    record = json.loads(shown(capsys, run, "--attempt", 1, "--json"))
    assert record["attempt"]["verdict"]["evidence"]["details"] == to_json(DETAILS)


def test_evidence_of_another_form_is_listed_as_it_is(run, capsys):
    text = shown(capsys, run, "--attempt", 2)
    assert "  odd               3" in text
    assert "log:\n    line 1\n    line 2" in text


@pytest.mark.parametrize("status", [Status.RUNTIME_ERROR, Status.INCORRECT_SHAPE])
def test_other_failures_are_not_about_values(status):
    assert wrong_values(verdict(status, DETAILS), is_attention=False) == []
    assert wrong_values(verdict(Status.INCORRECT_NUMERICAL, DETAILS), is_attention=False)
