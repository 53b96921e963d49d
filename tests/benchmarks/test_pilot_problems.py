"""The pilot's draw: the same each time, across the classes, nothing left out."""

import os
from collections import Counter

import pytest
from benchmarks.pilot_problems import allot, draw, draw_pilot, operator_class
from benchmarks.pilot_runs import pilot_runs

from hotloop.problems.kernelbench import KernelBenchEntry

TITLES_1 = (
    "matmul",
    "conv_standard_1D",
    "GELU_",
    "LayerNorm",
    "Max_Pooling_1D",
    "MSELoss",
    "cumsum",
)
TITLES_2 = ("Gemm_GroupNorm_ReLU", "Conv2d_Mish", "ConvTranspose3d_AvgPool_GELU")
DATA = os.environ.get("HOTLOOP_KERNELBENCH")


def catalogue():
    titles = {1: TITLES_1, 2: TITLES_2}
    return [
        KernelBenchEntry(level=level, problem_id=n, title=f"{n}_{names[n % len(names)]}", code="")
        for level, names in titles.items()
        for n in range(1, 43)
    ]


@pytest.mark.parametrize(
    ("level", "title", "expected"),
    [
        (1, "1_Square_matrix_multiplication_", "matmul"),
        (1, "54_conv_standard_3D__square_input__square_kernel", "conv"),
        (1, "28_HardSigmoid", "activation"),
        (1, "38_L1Norm_", "norm"),
        (1, "42_Max_Pooling_2D", "reduction"),
        (1, "51_Argmax_over_a_dimension", "reduction"),
        (1, "99_TripletMarginLoss", "loss"),
        (1, "93_masked_cumsum", "cumulative"),
        (2, "19_ConvTranspose2d_GELU_GroupNorm", "conv_transpose+norm"),
        (2, "99_Matmul_GELU_Softmax", "matmul+reduction"),
        (2, "28_BMM_InstanceNorm_Sum", "matmul+norm"),
        (2, "4_Conv2d_Mish_Mish", "conv+elementwise"),
    ],
)
def test_a_title_tells_the_class(level, title, expected):
    assert operator_class(level, title) == expected


def test_the_draw_covers_every_class_and_is_the_same_each_time():
    first = draw(catalogue())
    assert draw(reversed(catalogue())) == first
    assert Counter(p.level for p in first.problems) == {0: 6, 1: 12, 2: 12}
    assert len({p.operator_class for p in first.problems if p.level == 1}) == len(TITLES_1)
    assert len({p.operator_class for p in first.problems if p.level == 2}) == len(TITLES_2)
    assert Counter(p.level for p in first.cuda) == {0: 2, 1: 2, 2: 2}
    assert Counter(p.level for p in first.ablation) == {0: 2, 1: 5, 2: 5}
    assert set(first.ablation) | set(first.cuda) <= set(first.problems)


def test_another_seed_draws_others():
    assert draw(catalogue(), seed=1).problems != draw(catalogue()).problems


def test_runs_are_all_problems_six_in_cuda_and_three_more_arms_of_twelve():
    runs = pilot_runs(draw(catalogue()))
    assert Counter(r.arm.name for r in runs) == {
        "main": 36, "sample": 12, "execution": 12, "performance": 12,
    }  # fmt: skip
    assert len({r.name for r in runs}) == len(runs)


def test_shares_are_proportional_with_one_of_each_at_least():
    assert allot({"a": 60, "b": 30, "c": 10}, 10) == {"a": 6, "b": 3, "c": 1}
    assert allot({"a": 97, "b": 2, "c": 1}, 5) == {"a": 3, "b": 1, "c": 1}
    assert allot({"a": 3, "b": 2, "c": 1}, 2) == {"a": 1, "b": 1}
    assert allot({"a": 1, "b": 1}, 12) == {"a": 1, "b": 1}


@pytest.mark.skipif(not DATA, reason="HOTLOOP_KERNELBENCH names no data set")
def test_the_real_draw():
    drawn = draw_pilot(DATA)
    levels = {n: [p.problem_id for p in drawn.problems if p.level == n] for n in (1, 2)}
    assert levels == {
        1: [2, 6, 22, 30, 36, 46, 60, 69, 70, 80, 93, 96],
        2: [12, 16, 24, 27, 36, 44, 55, 65, 66, 71, 77, 84],
    }
