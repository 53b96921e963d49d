"""An error as large as TF32 makes it is named; other small errors are called something else."""

import pytest
from prompt_cases import candidate, norm_task, wrong_values

from hotloop.prompts.feedback import Judged, make_feedback

EVERYWHERE = {"shape": [128, 24, 30, 30], "total": 2764800, "mismatches": 2658432, "patterns": []}


def told(rmse, eager_rmse, **details):
    task = norm_task()
    verdict = wrong_values(
        EVERYWHERE | details, rmse=rmse, eager_rmse=eager_rmse, golden_rms=0.0435
    )
    judged = Judged(verdict=verdict, candidate=candidate(), problem=task.problem, info=task.info)
    return make_feedback(judged).text


def test_products_in_tf32_are_named():
    text = told(3.67e-6, 4.3e-9)  # measured: a 3-D convolution in TF32 where cuDNN took float32
    assert "rounded to TF32" in text
    assert "tf32x3" in text


@pytest.mark.parametrize(
    ("rmse", "eager_rmse", "details"),
    [
        (3.67e-6, 1.1e-6, {}),  # eager rounds to TF32 too: that is not the cause
        (2.0e-4, 4.3e-9, {}),  # as large as bfloat16 makes it
        (3.67e-6, 4.3e-9, {"mismatches": 900}),  # a few elements: an index, not a format
    ],
)
def test_other_errors_are_not(rmse, eager_rmse, details):
    assert "TF32" not in told(rmse, eager_rmse, **details)
