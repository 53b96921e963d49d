"""When wrong values explain themselves, and when the candidate is asked again."""

import dataclasses

import pytest
import torch
from test_launch_recording import board

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.verdict import CaseResult
from hotloop.worker.board import Board
from hotloop.worker.compare import make_bound
from hotloop.worker.diagnosis import Wrong
from hotloop.worker.evaluation import Evaluation
from hotloop.worker.follow_up import follow_up, is_explained
from hotloop.worker.load import load_problem
from hotloop.worker.reference import build_reference
from hotloop.worker.smaller import FORWARDS, TOTAL_S, smallest_failing


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


SLOW = """
import time
import torch
ROWS = 8
SECONDS = 0.0
class Model(torch.nn.Module):
    def forward(self, x):
        time.sleep(SECONDS)
        return x * 2
def get_inputs():
    return [torch.rand(ROWS, 4)]
"""


def reference_of(seconds):
    problem = Problem(
        name="slow", kind=ProblemKind.KERNELBENCH, source=SLOW, settings={"SECONDS": seconds}
    )
    return build_reference(load_problem(problem, device="cpu"))


class Recorder:
    """A process that notes what it is asked, and answers something that nobody expects."""

    def __init__(self, error):
        self.error, self.asked = error, []

    def exchange(self, message, timeout_s, fds=()):
        self.asked.append(message["op"])
        raise self.error


def evaluation(error):
    sources = (SourceFile(path="k.py", text=""),)
    kernel = Candidate(language="triton", sources=sources, entry="k.py")
    return Evaluation(Recorder(error), board(), kernel, "cpu")


@pytest.mark.parametrize(
    "error", [OSError("broken"), KeyError("x"), AssertionError(), IndexError()]
)
def test_whatever_goes_wrong_afterwards_is_a_line_in_the_log(error, capsys):
    asked = evaluation(error)
    failed = dataclasses.replace(wrong(), reference=reference_of(0.0))
    assert follow_up(asked, failed, {}, nominal=True) == {}
    assert asked.child.asked
    log = capsys.readouterr().err
    assert f"hotloop judge: no further details: {type(error).__name__}" in log


def test_a_reference_that_is_too_slow_is_not_built_at_smaller_sizes(capsys):
    slow, asked = reference_of(0.01), evaluation(OSError("asked"))
    draw = slow.draw(1, "shipped")
    asked.board = Board.build(slow, draw, slow.eager(draw))
    assert slow.eager_s >= 0.01
    slow.eager_s = TOTAL_S / FORWARDS * 1.01
    assert smallest_failing(asked, slow, "normal") is None
    assert "one forward of the reference takes" in capsys.readouterr().err
    assert not asked.child.asked
    slow.eager_s = TOTAL_S / FORWARDS * 0.99
    with pytest.raises(OSError, match="asked"):
        smallest_failing(asked, slow, "normal")
