"""What counts, what is killed, and how a run goes on where it was stopped."""

import json

import pytest
from benchmarks.mutation.plan import Choice, Progress, row_of
from benchmarks.mutation.report import result_rows
from benchmarks.mutation.rules import rules_of
from benchmarks.mutation.score import kind_of, summary, table, witness_text
from benchmarks.mutation.substrates import SUBSTRATES, substrates_of
from benchmarks.results_file import ROOT

from hotloop.core.problem import Policy
from hotloop.verify.static_rules import check_candidate

INSIDE = {"loads": 0, "stores": 0}
OUTSIDE = {"loads": 3, "stores": 0}


def row(outcome, status=None, *, oob=INSIDE, key="k", rule="other_zero", group="other_values"):
    made = {
        "key": key, "substrate": "max_reduction", "family": "reduction", "rule": rule,
        "group": group, "diff": "-a\n+b",
        "oracle": {"outcome": outcome, "oob": oob, "witness": {"case": "nominal: negative/31"}},
    }  # fmt: skip
    if status is not None:
        made["verdict"] = {
            "status": status, "profile": "normal", "rule": "bulk", "profiles": ["normal"],
        }  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("outcome", "status", "oob", "expected"),
    [
        ("shown", "INCORRECT_NUMERICAL", INSIDE, "killed"),
        ("shown", "COMPILE_ERROR", OUTSIDE, "killed"),
        ("shown", "PASSED", INSIDE, "survivor"),
        ("not_shown", "PASSED", INSIDE, "not_shown_passed"),
        ("not_shown", "INCORRECT_NUMERICAL", INSIDE, "not_shown_refused"),
        ("not_shown", "PASSED", OUTSIDE, "out_of_bounds_passed"),
        ("not_shown", "RUNTIME_ERROR", OUTSIDE, "out_of_bounds_refused"),
        ("raises", None, INSIDE, "no_run"),
        ("hangs", None, INSIDE, "no_run"),
        ("shown", None, INSIDE, "fault"),
    ],
)
def test_only_what_the_oracle_saw_counts(outcome, status, oob, expected):
    assert kind_of(row(outcome, status, oob=oob)) == expected


def test_the_score_is_killed_over_counted():
    rows = [
        *(row("shown", "INCORRECT_NUMERICAL", key=str(i)) for i in range(3)),
        row("shown", "PASSED", key="s"),
        row("not_shown", "PASSED", key="e"),
        row("raises", key="r", rule="axis_swapped", group="axes"),
    ]
    found = summary(rows)
    assert found["total"]["counted"] == 4
    assert found["total"]["score_frac"] == 0.75
    assert found["by_group"]["axes"]["score_frac"] is None
    assert found["killed_by_status"] == {"INCORRECT_NUMERICAL": 3}
    assert (found["device"], found["tier"], found["interpreter"]) == ("cpu", "fast", True)
    assert found["survivors_by_witness"] == {"negative": 1}
    assert "75.00%" in table(found)
    assert "negative/31" in witness_text(rows[3])


def test_a_survivor_is_kept_whole_and_a_killed_one_short():
    killed, survivor = result_rows([row("shown", "PASSED", key="b"), row("shown", "X", key="a")])
    assert "diff" not in killed
    assert survivor["diff"] == "-a\n+b"
    assert survivor["oracle"]["witness"]


def test_progress_goes_on_after_a_line_that_was_cut(tmp_path):
    path = tmp_path / "rows.jsonl"
    progress = Progress(path)
    for key in "abc":
        progress.add(row("shown", "PASSED", key=key))
    path.write_text(path.read_text()[:-20], encoding="utf-8")
    again = Progress(path)
    assert list(again.rows) == ["a", "b"]
    again.add(row("shown", "PASSED", key="c"))
    assert set(Progress(path).rows) == set("abc")


def test_a_smaller_limit_takes_a_part_of_a_larger_one():
    substrate = substrates_of("hard_tanh")[0]
    few, many = (Choice(rules_of("masks,tiles"), 2, n, 0).of(substrate.source()) for n in (5, 12))
    assert len(few) == 5
    assert few == many[:5]
    assert len({m.rule for m in few}) == 5, "rules take turns"


def test_a_row_says_what_was_changed():
    substrate = substrates_of("hard_tanh")[0]
    mutant = Choice(rules_of("store_mask_dropped"), 1, None, 0).of(substrate.source())[0]
    made = row_of(substrate, substrate.source(), mutant)
    assert made["key"] == f"hard_tanh/{mutant.digest}"
    assert made["diff"].splitlines()[1].endswith("1.0))")
    json.dumps(made)


def test_substrates_are_many_distinct_and_there():
    assert len({s.name for s in SUBSTRATES}) == len(SUBSTRATES) >= 40
    for substrate in SUBSTRATES:
        assert substrate.needs_data or (ROOT / substrate.problem).is_file()
        assert substrate.kernel is None or substrate.kernel.is_file()
    kernels = {s.kernel for s in SUBSTRATES}
    assert {p for p in (ROOT / "benchmarks" / "mutants" / "kernels").glob("*.py")} <= kernels


@pytest.mark.parametrize(
    "substrate", [s for s in SUBSTRATES if s.kernel is not None], ids=lambda s: s.name
)
def test_a_substrate_keeps_the_static_rules(substrate):
    from benchmarks.verify_suite import candidate

    library = "anchored" if substrate.needs_data else "none"
    assert check_candidate(candidate(substrate.source()), Policy(library_calls=library)) is None


def test_an_unknown_problem_is_named():
    with pytest.raises(ValueError, match="nonsense"):
        substrates_of("softmax,nonsense")
    assert {s.family for s in substrates_of("softmax")} == {"softmax"}
