"""When wrong values explain themselves, and when the candidate is asked again."""

import pytest
import torch

from hotloop.core.verdict import CaseResult
from hotloop.worker.compare import make_bound
from hotloop.worker.diagnosis import Wrong
from hotloop.worker.follow_up import is_explained


def wrong(rmse=0.5):
    golden = torch.ones(4, 4, dtype=torch.float64)
    bound = make_bound(golden, [golden.float()], torch.float32, exact=False)
    case = CaseResult(
        workload="nominal", profile="normal", output="output0", passed=False, rule="bulk",
        rmse=rmse, max_abs=rmse, eager_rmse=1e-7, eager_max_abs=1e-7, golden_rms=1.0,
        mismatches=16, worst_index=(0, 0),
    )  # fmt: skip
    return Wrong(case, golden.float() + rmse, golden, bound)


def law(median, share):
    return {"median": median, "spread": 0.0, "share": share}


@pytest.mark.parametrize(
    "details",
    [
        {"origin": {"kind": "zero"}},
        {"mistake": "no_mask"},
        {"nonfinite": 3},
        {"ratio": law(2.0, 1.0)},
        {"difference": law(0.5, 0.995)},
    ],
)
def test_a_strong_finding_explains(details):
    assert is_explained(wrong(), details)


@pytest.mark.parametrize(
    "details", [{}, {"ratio": law(2.0, 0.5)}, {"difference": None}, {"evenness": 0.67}]
)
def test_a_tendency_does_not(details):
    assert not is_explained(wrong(), details)


def test_an_even_and_small_error_is_one_of_rounding():
    assert is_explained(wrong(rmse=0.001), {"evenness": 0.67})
    assert not is_explained(wrong(rmse=0.001), {"evenness": 0.01})
