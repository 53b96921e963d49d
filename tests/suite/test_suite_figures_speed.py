"""What counts as a speed-up where a baseline or its ratio is missing, and where there is no GPU."""

import json

import pytest
from suite_figure_runs import BASELINES_MS, Made, measured, run_at

from hotloop.core.verdict import Status
from hotloop.report.tables import listed_tables
from hotloop.suite.figures import suite_figures
from hotloop.suite.figures_classes import operator_class
from hotloop.suite.tables import suite_tables

CUDA = "model/as_shipped/cuda"
SOLVED = Made(outcomes=(1.0,), finals={1: 1.0})
WRONG = Status.INCORRECT_NUMERICAL


def over(*runs):
    return suite_figures(runs)["columns"][CUDA]["levels"]["1"]["all"]["speedup"]


def solved_with(**changes):
    made = measured(1.0, is_final=True, **changes)
    return Made(outcomes=(1.0,), finals={1: made}, info={"baselines_ms": dict(made.baselines)})


def test_a_problem_without_the_baseline_is_left_out_and_named(tmp_path):
    eager = {"eager": 4.0}
    alone = solved_with(baselines=eager, speedup=eager, speedup_ci={"eager": (3.9, 4.1)})
    unsolved = Made(outcomes=(WRONG,), info={"baselines_ms": eager})
    found = over(run_at(tmp_path, 1, alone), run_at(tmp_path, 2, unsolved))
    assert found["compile"]["problems"] == 0
    assert found["compile"]["without"] == ["1/1", "1/2"]
    assert found["compile"]["geometric_mean"] is None
    assert set(found["compile"]["fast_p"].values()) == {None}
    assert found["better_of_both"]["problems"] == 2
    assert found["better_of_both"]["geometric_mean"] == pytest.approx(2.0)


def test_a_problem_that_nobody_loaded_keeps_its_place_everywhere(tmp_path):
    found = over(run_at(tmp_path, 1, SOLVED), run_at(tmp_path, 2))
    assert [found[n]["problems"] for n in ("eager", "compile", "better_of_both")] == [2, 2, 2]
    assert "eager_tf32" not in found


def test_a_ratio_that_is_not_claimed_counts_as_one_at_most(tmp_path):
    quick = solved_with(speedup={}, speedup_ci={})
    slow = Made(
        outcomes=(8.0,), finals={1: measured(8.0, is_final=True, speedup={}, speedup_ci={})}
    )
    found = over(run_at(tmp_path, 1, quick), run_at(tmp_path, 2, slow))["eager"]
    # 4.0 is not claimed and counts as 1.0; 0.5 is not claimed and does not become better.
    assert found["unclaimed"] == ["1/1", "1/2"]
    assert found["geometric_mean"] == pytest.approx(0.5**0.5)
    assert found["fast_p"]["0"] == 1.0
    assert found["fast_p"]["0.8"] == 0.0
    assert (found["wins"], found["over_1.05"]) == (0, 0)


def test_a_baseline_that_the_final_tier_left_out_takes_the_claim_over_both(tmp_path):
    eager = {"eager": 4.0}
    made = measured(
        1.0, is_final=True, baselines=eager, speedup=eager, speedup_ci={"eager": (3.9, 4.1)}
    )
    run = run_at(tmp_path, 1, Made(outcomes=(1.0,), finals={1: made}))
    found = over(run)
    assert found["eager"]["geometric_mean"] == pytest.approx(4.0)
    assert found["better_of_both"]["unclaimed"] == ["1/1"]
    assert found["better_of_both"]["geometric_mean"] == 1.0


def test_a_slower_kernel_counts_with_its_own_ratio(tmp_path):
    slow = Made(outcomes=(8.0,), finals={1: 8.0})
    assert over(run_at(tmp_path, 1, slow))["eager"]["geometric_mean"] == pytest.approx(0.5)


def test_eager_with_tf32_stands_beside_where_it_was_measured(tmp_path):
    ms = BASELINES_MS | {"eager_tf32": 1.5}
    interval = {name: (t * 0.99, t * 1.01) for name, t in ms.items()}
    tf32 = solved_with(baselines=ms, speedup=ms, speedup_ci=interval)
    found = over(run_at(tmp_path, 1, tf32), run_at(tmp_path, 2, SOLVED), run_at(tmp_path, 3))
    assert found["eager_tf32"]["problems"] == 1
    assert found["eager_tf32"]["without"] == ["1/2", "1/3"]
    assert found["eager_tf32"]["geometric_mean"] == pytest.approx(1.5)
    assert found["eager"]["problems"] == 3


def test_precision_policies_stand_side_by_side_and_are_not_mixed(tmp_path):
    strict = Made(outcomes=(2.0,), finals={1: 2.0}, precision="strict")
    found = suite_figures([
        run_at(tmp_path, 1, Made(outcomes=(1.0,), finals={1: 1.0}, info={"eager_tf32": True})),
        run_at(tmp_path, 2, SOLVED),
        run_at(tmp_path, 1, strict),
    ])  # fmt: skip
    assert sorted(found["columns"]) == [CUDA, "model/strict/cuda"]
    (side,) = found["precision"]
    assert (side["problems"], side["level"]) == (1, 1)
    means = {
        name: policy["speedup"]["eager"]["geometric_mean"]
        for name, policy in side["policies"].items()
    }
    assert means == {"as_shipped": pytest.approx(4.0), "strict": pytest.approx(2.0)}
    assert side["eager_rounds_convolutions_to_tf32"]["yes"] == 1
    assert "Precision policies, model/cuda, level 1" in suite_tables(found)


def test_one_policy_has_no_second_side(tmp_path):
    assert suite_figures([run_at(tmp_path, 1, SOLVED)])["precision"] == []


def test_peak_memory_is_of_those_that_said_it(tmp_path):
    quiet = Made(outcomes=(1.0,), finals={1: measured(1.0, is_final=True, peak_memory_bytes=None)})
    found = suite_figures([run_at(tmp_path, 1, SOLVED), run_at(tmp_path, 2, quiet)])
    assert found["columns"][CUDA]["together"]["all"]["peak_memory_bytes"] == {
        "median": 1000, "most": 1000, "known": 1, "unknown": 1
    }  # fmt: skip


def test_on_cpu_nothing_looks_like_a_speed(tmp_path):
    runs = [
        run_at(tmp_path, 1, Made(outcomes=(3.25,), device="cpu")),
        run_at(tmp_path, 2, Made(outcomes=(WRONG,), device="cpu")),
    ]
    found = suite_figures(runs)
    (name,) = found["columns"]
    column = found["columns"][name]
    one = column["together"]["all"]
    assert name == "model/as_shipped/cpu"
    assert (one["correct"], one["correct_percent"], one["speedup"]) == (None, None, None)
    assert one["fast_tier_correct"] == 1
    assert [n["problem"] for n in column["not_solved"]] == ["1/2"]
    text = json.dumps(found["columns"])
    assert not [word for word in ("fast_p", "geometric", "latency", "3.25") if word in text]
    assert set(column["curves"]["together"]["calls"]) == {
        "problems", "fast_tier_solve_rate", "unknown"
    }  # fmt: skip
    assert "No speed" in suite_tables(found)


@pytest.mark.parametrize(
    ("level", "title", "expected"),
    [
        (1, "19_ReLU", "activation"),
        (1, "1_Square_matrix_multiplication_", "matmul"),
        (1, "89_cumsum", "cumulative"),
        (1, "40_LayerNorm", "norm"),
        (1, "47_Sum_reduction_over_a_dimension", "reduction"),
        (1, "94_MSELoss", "loss"),
        (1, "50_conv_standard_2D__square_input__square_kernel", "conv"),
        (2, "12_Gemm_Multiply_LeakyReLU", "matmul+elementwise"),
        (2, "77_ConvTranspose3d_Scale_BatchNorm_GlobalAvgPool", "conv_transpose+norm"),
        (2, "55_Matmul_MaxPool_Sum_Scale", "matmul+reduction"),
        (1, "", "unclassified"),
    ],
)
def test_the_title_says_the_class(level, title, expected):
    assert operator_class(level, title) == expected


def test_failures_are_counted_by_class(tmp_path):
    first = Made(outcomes=(WRONG, WRONG, 1.0, 2.0), finals={3: WRONG, 4: 2.0})
    second = Made(outcomes=(WRONG, None))
    found = suite_figures([run_at(tmp_path, 1, first), run_at(tmp_path, 2, second)])
    fast, final = found["columns"][CUDA]["failures"]
    assert fast == {
        "status": "INCORRECT_NUMERICAL", "tier": "fast", "kind": "wrong_values", "rule": "tile",
        "attempts": 3, "problems": 2, "unsolved": 1, "examples": ["1/1", "1/2"],
    }  # fmt: skip
    assert (final["tier"], final["attempts"], final["unsolved"]) == ("final", 1, 0)
    assert found["columns"][CUDA]["start_failures"] == []
    assert "starting kernels" not in suite_tables(found)


def test_a_refused_start_is_in_a_table_of_its_own(tmp_path):
    """Nobody was asked for it, at whichever tier it was refused."""
    early = Made(outcomes=(WRONG, WRONG), actions={1: "start"})
    late = Made(outcomes=(1.0, 2.0), finals={1: WRONG, 2: WRONG}, actions={1: "start"})
    swept = Made(
        outcomes=(1.0, 1.0), finals={2: WRONG}, actions={1: "start", 2: "sweep"}, parents={2: (1,)}
    )
    runs = [run_at(tmp_path, n, made) for n, made in enumerate((early, late, swept), 1)]
    found = suite_figures(runs)
    column = found["columns"][CUDA]
    told = {
        name: [(f["tier"], f["attempts"], f["examples"]) for f in column[name]]
        for name in ("failures", "start_failures")
    }
    assert told["failures"] == [("fast", 1, ["1/1"]), ("final", 1, ["1/2"])]
    assert told["start_failures"] == [("final", 2, ["1/2", "1/3"]), ("fast", 1, ["1/1"])]
    title = "Failed verdicts of starting kernels by class"
    assert title in suite_tables(found)
    (table,) = [t for t in listed_tables(column, {}) if t.title == title]
    assert [row[1] for row in table.rows] == ["final", "fast"]


def test_a_start_that_passed_is_in_no_table_of_failures(tmp_path):
    made = Made(outcomes=(1.0, WRONG), finals={1: 1.0}, actions={1: "start"})
    column = suite_figures([run_at(tmp_path, 1, made)])["columns"][CUDA]
    assert [f["attempts"] for f in column["failures"]] == [1]
    assert column["start_failures"] == []
