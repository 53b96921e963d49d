import json
from dataclasses import replace

import pytest

from hotloop.cli.main import main
from hotloop.core.attempt import Attempt
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.record import to_json
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.plan import plan_search
from hotloop.store.sqlite import SqliteStore

PROBLEM = """\
B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
"""


def candidate(block):
    text = f"import torch\nBLOCK = {block}\n"
    return Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))


def verdict(kernel, status, message=""):
    failed = status is not Status.PASSED
    return Verdict(
        status=status, stage=Stage.CORRECTNESS, message=message, candidate_id=kernel.id,
        problem_id="p", tier=Tier.FAST, device="cpu",
        evidence=Evidence(kind="wrong_values", message=message) if failed else None,
    )  # fmt: skip


def record(store, number, block, status, *, objective=None, message=""):
    kernel = candidate(block)
    opened = Attempt(
        id=number, action="schedule", point={"BLOCK": block}, parents=(), generator="builtin",
        candidate_id=kernel.id, verdict=None, objective=None, started_s=0.0, finished_s=None,
    )  # fmt: skip
    store.propose(opened, kernel)
    found = verdict(kernel, status, message)
    store.conclude(replace(opened, verdict=found, objective=objective, finished_s=1.0))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the folder of a run with two passed attempts and a hostile one."""
    tmp_path = tmp_path_factory.mktemp("show")
    problem = tmp_path / "relative.py"
    problem.write_text(PROBLEM)
    plan = plan_search(problem, device="cpu", out=tmp_path / "run")
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
        record(store, 1, 16, Status.PASSED, objective=7.5)
        record(store, 2, 32, Status.INCORRECT_NUMERICAL, message="\x1b[31mred\x1b]0;title\x07")
        record(store, 3, 64, Status.PASSED, objective=2.25)
        store.note("stopped", {"reason": "candidates", "budget": to_json(plan.spec.budget)})
    return plan.folder


def shown(capsys, *args):
    assert main(["show", *map(str, args)]) == 0
    return capsys.readouterr().out


def test_a_run_is_a_table_with_its_best_attempt(run, capsys):
    text = shown(capsys, run)
    assert "3 attempts" in text
    assert "static cost" in text
    assert "INCORRECT_NUMERICAL" in text
    assert "best: attempt 3: PASSED" in text
    assert " ms" not in text
    assert "speed" not in text


def test_one_attempt_has_its_source(run, capsys):
    text = shown(capsys, run, "--attempt", 1)
    assert "BLOCK=16" in text
    assert "BLOCK = 16" in text


def test_a_diff_without_a_number_is_the_bests(run, capsys):
    text = shown(capsys, run, "--diff")
    assert "-BLOCK = 32" in text
    assert "+BLOCK = 64" in text


def test_the_first_attempt_differs_from_nothing(run, capsys):
    assert "no difference" in shown(capsys, run, "--attempt", 1, "--diff")


def test_terminal_codes_of_a_candidate_do_not_reach_the_terminal(run, capsys):
    text = shown(capsys, run, "--attempt", 2) + shown(capsys, run)
    assert not set(text) & {"\x1b", "\x07"}


def test_json_is_one_object_on_stdout(run, capsys):
    record = json.loads(shown(capsys, run, "--json"))
    assert record["best_attempt_id"] == 3
    assert record["stop_reason"] == "candidates"
    assert [a["id"] for a in record["attempts"]] == [1, 2, 3]
    one = json.loads(shown(capsys, run, "--attempt", 3, "--diff", "--json"))
    assert one["sources"]["kernel.py"].endswith("BLOCK = 64\n")
    assert "+BLOCK = 64" in one["diff"]


def test_an_attempt_that_is_not_there_is_a_mistake(run, capsys):
    assert main(["show", str(run), "--attempt", "9"]) == 2
    assert "1 to 3" in capsys.readouterr().err
