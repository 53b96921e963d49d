"""Calls that look timed beside one under watch, on values that no call had."""

import pytest
import torch
from problem_files import forward
from test_launch_recording import COLUMNS, ROWS, board

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Stage, Status
from hotloop.worker.cases import CaseBook
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.reference import build_reference
from hotloop.worker.timed import TimedInputs
from hotloop.worker.timed_conduct import check_timed_conduct

SIZE = ROWS * COLUMNS
SEEN = {
    "outputs": [], "launches": 1, "operations": [], "applied": 0, "answers": [], "from_kernels": 1,
    "python_threads": 1, "tasks": 0, "hidden": [], "started": 0, "work": 0,
}  # fmt: skip
TIMED = {"outputs": [], "launches": 1, "started": 0, "work": 0}
PRODUCT = {"operations": [{"name": "mm", "numel": SIZE}], "answers": [{"name": "mm", "output": 0}]}


class Process:
    """Answers requests for calls as it was told; counts those under watch."""

    def __init__(self, watched, timed):
        self.watched, self.timed, self.asked = list(watched), timed, 0

    def exchange(self, message, timeout_s, fds=()):
        if message["timed"]:
            return {**TIMED, **self.timed}, []
        answer = self.watched[min(self.asked, len(self.watched) - 1)]
        self.asked += 1
        return {**SEEN, **answer}, []


@pytest.fixture(scope="module")
def inputs():
    reference = build_reference(forward("x @ y", f"torch.randn({ROWS}, {COLUMNS})",
                                        f"torch.randn({COLUMNS}, {COLUMNS})"))  # fmt: skip
    book = CaseBook(reference, "nominal")
    book.add("shipped", 3, cache_bytes=1 << 20)
    draw, _ = book.materialise(book.cases[0])
    return TimedInputs(
        reference, draw, book.cases[0].bounds, lambda: torch.mm(*draw.inputs), copy_out_ms=0.0
    )


def check(inputs, watched, timed):
    """Return the failure, or None, and how many calls under watch there were."""
    sources = (SourceFile(path="k.py", text=""),)
    kernel = Candidate(language="triton", sources=sources, entry="k.py")
    process = Process(watched, timed)
    evaluation = Evaluation(process, board(), kernel, "cpu")
    seeds = []

    def on_new_values(call):
        seeds.append(inputs.redraw())
        return call(0)

    try:
        check_timed_conduct(evaluation, inputs, on_new_values)
    except Failed as failed:
        return failed, process.asked
    finally:
        assert len(set(seeds)) == len(seeds) == 2 * process.asked
    return None, process.asked


@pytest.mark.parametrize(
    ("watched", "timed", "words"),
    [
        (PRODUCT, {}, "library product"),
        ({"from_kernels": 0}, {}, "no output comes from a kernel"),
        ({}, {"work": SIZE * COLUMNS}, "torch does more"),
        ({"launches": 2}, {}, "fewer kernels"),
        ({}, {"started": 1}, "threads"),
    ],
)
def test_what_is_wrong_twice_on_new_values_is_refused(inputs, watched, timed, words):
    failed, asked = check(inputs, [watched], timed)
    assert (failed.status, failed.stage) == (Status.REWARD_HACK, Stage.PERFORMANCE)
    assert words in failed.evidence.message
    assert asked == 2


@pytest.mark.parametrize(
    ("watched", "asked"), [([{}], 1), ([PRODUCT, {}], 2), ([{"launches": 2}, {}], 2)]
)
def test_an_honest_forward_passes_and_one_that_tunes_once(inputs, watched, asked):
    assert check(inputs, watched, {}) == (None, asked)
