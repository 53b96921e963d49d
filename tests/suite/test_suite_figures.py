"""A suite's figures against examples that were worked out by hand."""

import json

import pytest
from suite_figure_runs import WITH_LIBRARY, Made, measured, run_at

from hotloop.core.audit import Audit
from hotloop.core.problem import NOTHING_TELLS
from hotloop.core.record import to_json
from hotloop.core.verdict import Status, Tier
from hotloop.store.sqlite import SqliteStore
from hotloop.suite.figures import figures_of, suite_figures
from hotloop.suite.figures_rows import Column, read_rows
from hotloop.suite.tables import suite_tables
from hotloop.verify.outside_notes import VERDICT

WRONG = Status.INCORRECT_NUMERICAL
CUDA = "model/as_shipped/cuda"
SOLVED = Made(outcomes=(1.0,), finals={1: 1.0})
"""Four times as fast as eager, twice as fast as compiled."""
FAILED = Made(outcomes=(WRONG, WRONG))


def figures(*runs):
    found = suite_figures(runs)
    json.dumps(found, allow_nan=False)
    assert suite_tables(found).endswith("\n")
    return found


def group(found, which="all", level="1", column=CUDA):
    return found["columns"][column]["levels"][level][which]


@pytest.fixture
def four(tmp_path):
    """1/1 is solved, 1/2 is as fast as eager, 1/3 failed, 1/4 awaits its final verdict."""
    return figures(
        run_at(tmp_path, 1, Made(outcomes=(WRONG, 1.0, 0.5), finals={2: 1.0, 3: WRONG})),
        run_at(tmp_path, 2, Made(outcomes=(4.0,), finals={1: 4.0})),
        run_at(tmp_path, 3, FAILED),
        run_at(tmp_path, 4, Made(outcomes=(1.0,), reason="waiting", message="to be judged")),
    )


def test_correct_counts_kernels_that_passed_the_final_tier_alone(four):
    assert group(four)["correct"] == 2
    assert group(four)["correct_percent"] == 50.0
    assert group(four)["fast_tier_correct"] == 3
    assert group(four)["statuses"] == {"NO_FINAL": 1, "NO_KERNEL": 1, "PASSED": 2}


def test_who_is_not_solved_is_named_with_the_reason(four):
    assert four["columns"][CUDA]["not_solved"] == [
        {"problem": "1/3", "status": "NO_KERNEL", "why": "calls", "undecidable": False},
        {
            "problem": "1/4",
            "status": "NO_FINAL",
            "why": "waiting: to be judged",
            "undecidable": False,
        },
    ]
    assert group(four)["waiting"] == 1


def test_over_eager(four):
    # Ratios 4, 1 (a tie), and 1.0 for the two failures: (4 * 1 * 1 * 1) ** (1 / 4).
    eager = group(four)["speedup"]["eager"]
    assert eager["fast_p"] == {"0": 0.5, "0.8": 0.5, "1": 0.25, "1.2": 0.25, "1.5": 0.25, "2": 0.25}
    assert eager["geometric_mean"] == pytest.approx(4**0.25)
    assert (eager["problems"], eager["median"], eager["best"]) == (4, 1.0, 4.0)
    assert (eager["wins"], eager["over_1.05"]) == (1, 1)


def test_a_tie_at_p_is_not_faster(four):
    # Over compiled code: 2 (a tie at 2), 0.5, and two failures.
    compiled = group(four)["speedup"]["compile"]
    assert compiled["fast_p"] == {
        "0": 0.5, "0.8": 0.25, "1": 0.25, "1.2": 0.25, "1.5": 0.25, "2": 0.0
    }  # fmt: skip
    assert compiled["geometric_mean"] == pytest.approx(1.0)
    assert compiled["median"] == 1.0


def test_the_better_of_both_is_chosen_problem_by_problem(tmp_path):
    turned = measured(1.0, is_final=True, speedup={"eager": 1.1, "compile": 3.0},
                      speedup_ci={"eager": (1.01, 1.2), "compile": (2.9, 3.1)})  # fmt: skip
    found = figures(
        run_at(tmp_path, 1, SOLVED),
        run_at(tmp_path, 2, Made(outcomes=(1.0,), finals={1: turned})),
    )
    over = group(found)["speedup"]
    assert over["better_of_both"]["geometric_mean"] == pytest.approx((2.0 * 1.1) ** 0.5)
    # 1.1 has its lower end at 1.01: no win over eager, so none over both.
    assert [over[n]["wins"] for n in ("eager", "compile", "better_of_both")] == [1, 2, 1]


def test_what_was_spent_to_get_there(four):
    found = group(four)
    # 1/1 with its second call, 1/2 with its first; the others never.
    assert found["to_first_correct"]["calls"] == {
        "median": 1.5, "most": 2, "known": 2, "unknown": 0, "never": 2
    }  # fmt: skip
    assert found["to_first_correct"]["tokens"]["median"] == 150
    assert found["to_first_correct"]["usd"]["median"] == 0.75
    assert found["to_first_correct"]["time_s"]["median"] == 15.0
    assert found["to_fast_tier_first_correct"]["calls"]["known"] == 3
    assert found["to_best"]["calls"]["never"] == 2


def test_a_clock_that_did_not_see_the_judge_says_nothing(tmp_path):
    """Verdicts that came in a file: the run's own clock stood while the kernel was judged."""
    run = run_at(tmp_path, 1, Made(outcomes=(1.0,), finals={1: 1.0}))
    (here,) = read_rows([run])
    with SqliteStore(run.folder) as store:
        store.note(VERDICT, {})
    (outside,) = read_rows([run])
    assert here.paid[1].time_s is not None
    assert outside.paid[1].time_s is None
    assert outside.paid[1].calls == here.paid[1].calls
    curve = figures_of([outside])["columns"]["model/as_shipped/cuda"]["curves"]["1"]["time_s"]
    assert curve["unknown"] == [outside.name]


def test_the_best_may_come_later_than_the_first(tmp_path):
    made = Made(outcomes=(2.0, 1.0), finals={1: 2.0, 2: 1.0})
    found = group(figures(run_at(tmp_path, 1, made)))
    assert found["to_first_correct"]["calls"]["median"] == 1
    assert found["to_best"]["calls"]["median"] == 2


def test_unknown_tokens_and_dollars_stay_unknown(tmp_path):
    made = Made(outcomes=(1.0,), finals={1: 1.0}, tokens=(None,), usd=None)
    found = group(figures(run_at(tmp_path, 1, made)))["to_first_correct"]
    expected = {"median": None, "most": None, "known": 0, "unknown": 1, "never": 0}
    assert found["tokens"] == found["usd"] == expected
    assert found["calls"]["median"] == 1


def test_a_call_without_a_note_cost_something_unknown(tmp_path):
    asked = Made(outcomes=(1.0,), finals={1: 1.0}, tokens=None)
    free = Made(
        outcomes=(1.0,), finals={1: 1.0}, tokens=None, action="schedule", generator="builtin"
    )
    found = figures(run_at(tmp_path, 1, asked), run_at(tmp_path, 1, free))
    of_model = group(found)["to_best"]
    of_builtin = group(found, column="builtin/as_shipped/cuda")["to_best"]
    assert (of_model["calls"]["median"], of_model["tokens"]["median"]) == (1, None)
    assert (of_builtin["calls"]["median"], of_builtin["tokens"]["median"]) == (0, 0)


def test_the_call_for_ideas_is_paid_before_any_draft(tmp_path):
    ideas = {"calls": 1, "tokens": 30, "usd": 0.25, "call_s": 1.0}
    made = Made(outcomes=(1.0,), finals={1: 1.0}, ideas=ideas)
    found = group(figures(run_at(tmp_path, 1, made)))["to_first_correct"]
    assert [found[n]["median"] for n in ("calls", "tokens", "usd")] == [2, 130, 0.75]


def test_no_runs():
    found = figures()
    assert found["columns"] == {}
    assert suite_tables(found) == "no runs\n"


def test_all_failed(tmp_path):
    found = figures(run_at(tmp_path, 1, FAILED), run_at(tmp_path, 2, FAILED))
    better = group(found)["speedup"]["better_of_both"]
    assert group(found)["correct_percent"] == 0.0
    assert (better["geometric_mean"], better["median"], better["best"]) == (1.0, 1.0, None)
    assert set(better["fast_p"].values()) == {0.0}
    assert group(found)["to_first_correct"]["calls"]["median"] is None


def test_a_run_that_was_never_begun_or_loaded_counts_as_not_solved(tmp_path):
    unloaded = Made(is_loaded=False, reason="failed", message="it does not parse\nmore")
    found = figures(run_at(tmp_path, 1, SOLVED), run_at(tmp_path, 2), run_at(tmp_path, 3, unloaded))
    assert [group(found, which)["problems"] for which in ("all", "rankable", "decidable")] == [
        3, 1, 3
    ]  # fmt: skip
    assert group(found)["speedup"]["eager"]["geometric_mean"] == pytest.approx(4 ** (1 / 3))
    named = {n["problem"]: (n["status"], n["why"]) for n in found["columns"][CUDA]["not_solved"]}
    assert named["1/2"][0] == "NO_RUN"
    assert named["1/3"] == ("NOT_LOADED", "failed: it does not parse")


def test_the_callers_word_on_why_it_was_not_run_is_kept(tmp_path):
    column = Column("builtin", "as_shipped", "cuda")
    run = run_at(tmp_path, 1, trouble="too little memory", column=column)
    found = figures(run)
    assert found["columns"]["builtin/as_shipped/cuda"]["not_solved"] == [
        {"problem": "1/1", "status": "NO_RUN", "why": "too little memory", "undecidable": False}
    ]


def test_a_verdict_of_the_fast_tier_is_no_final_one(tmp_path):
    fast = Made(outcomes=(1.0,), finals={1: 1.0}, final_tier=Tier.FAST)
    found = group(figures(run_at(tmp_path, 1, fast)))
    assert (found["correct"], found["statuses"]) == (0, {"NO_FINAL": 1})
    assert found["speedup"]["eager"]["best"] is None


def test_levels_stand_apart_and_together(tmp_path):
    found = figures(run_at(tmp_path, 1, SOLVED), run_at(tmp_path, 1, FAILED, level=2))
    assert [group(found, level=level)["correct"] for level in ("1", "2")] == [1, 0]
    together = found["columns"][CUDA]["together"]["all"]
    assert (together["problems"], together["correct"]) == (2, 1)


def test_a_folder_that_cannot_be_read_counts_as_not_solved(tmp_path):
    run = run_at(tmp_path, 1)
    run.folder.mkdir()
    (run.folder / "journal.sqlite").write_bytes(b"no journal" * 1000)
    found = figures(run)
    assert group(found)["correct"] == 0
    assert found["columns"][CUDA]["not_solved"][0]["status"] == "UNREADABLE"


def test_what_cannot_be_decided_is_listed_and_in_no_target(tmp_path):
    faked = Made(
        outcomes=(1.0,), finals={1: 1.0}, info={"rankable": False, "notes": ("zeros pass",)}
    )
    void = Made(outcomes=(Status.INCONCLUSIVE,))
    found = figures(
        run_at(tmp_path, 1, faked), run_at(tmp_path, 2, void), run_at(tmp_path, 3, SOLVED)
    )
    assert [group(found, which)["problems"] for which in ("all", "rankable", "decidable")] == [
        3, 2, 1
    ]  # fmt: skip
    assert [group(found, which)["correct"] for which in ("all", "decidable")] == [2, 1]
    column = found["columns"][CUDA]
    assert sum(group["problems"] for group in column["by_class"].values()) == 1
    assert column["curves"]["1"]["calls"]["problems"] == 1
    assert column["curves"]["together"]["calls"]["solve_rate"][-1][1] == 1.0
    assert found["columns"][CUDA]["undecidable"] == [
        {"problem": "1/1", "status": "PASSED", "reason": "zeros pass"},
        {"problem": "1/2", "status": "NO_KERNEL", "reason": "what was found"},
    ]


@pytest.mark.parametrize("reasons", [(), ("ones pass",)])
def test_the_last_audit_that_came_from_elsewhere_decides(tmp_path, reasons):
    first = {"rankable": not reasons}  # what the run was begun with said the contrary
    run = run_at(tmp_path, 1, Made(outcomes=(1.0,), finals={1: 1.0}, info=first))
    audit = Audit(key="k", reasons=reasons)
    with SqliteStore(run.folder) as store:
        store.note("outside_audit", {"problem_id": "p", "audit": to_json(audit)})
    assert group(figures(run), "rankable")["problems"] == (0 if reasons else 1)


def test_a_reference_that_nothing_can_be_told_by_is_undecidable_and_a_broken_one_is_not(tmp_path):
    random = run_at(tmp_path, 1, trouble=f"ProblemError: {NOTHING_TELLS}: forward draws numbers")
    broken = run_at(tmp_path, 2, trouble="ProblemError: forward fails")
    found = figures(random, broken)
    assert group(found, "decidable")["problems"] == 1
    assert [n["problem"] for n in found["columns"][CUDA]["undecidable"]] == ["1/1"]


@pytest.mark.parametrize(
    "made",
    [
        Made(outcomes=(1.0,), finals={1: 1.0}, source=WITH_LIBRARY),
        Made(outcomes=(1.0,), finals={1: 1.0}, checks=("conduct", "library_anchor")),
    ],
)
def test_library_anchors_count_and_are_given_apart(tmp_path, made):
    found = group(figures(run_at(tmp_path, 1, made), run_at(tmp_path, 2, SOLVED)))
    assert (found["correct"], found["library_anchors"]["yes"]) == (2, 1)
    assert found["speedup"]["eager"]["geometric_mean"] == pytest.approx(4.0)
    own = found["without_library_anchors"]
    assert (own["correct"], own["correct_percent"]) == (1, 50.0)
    assert own["speedup"]["eager"]["geometric_mean"] == pytest.approx(2.0)
    assert own["speedup"]["eager"]["fast_p"]["0"] == 0.5


def test_an_anchor_that_only_the_source_could_show_is_said_to_be_so(tmp_path):
    unseen = Made(outcomes=(1.0,), finals={1: 1.0}, checks=())
    found = group(figures(run_at(tmp_path, 1, unseen), run_at(tmp_path, 2, SOLVED)))
    assert found["library_anchors"] == {"yes": 0, "by_source_alone": 1}


def test_one_problem_has_one_run_in_a_column(tmp_path):
    run = run_at(tmp_path, 1, SOLVED)
    with pytest.raises(ValueError, match="expected one run of 1/1 in model/as_shipped/cuda"):
        suite_figures([run, run])
