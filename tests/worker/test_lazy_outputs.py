"""Outputs whose values lie elsewhere: free where the reference's do, or where it does more."""

import pytest
import torch
from problem_files import forward
from test_launch_recording import board

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.worker.call_rules import CallRules
from hotloop.worker.cases import CaseBook
from hotloop.worker.claims import Observed
from hotloop.worker.dispatch_witness import DispatchWitness
from hotloop.worker.evaluation import Evaluation, Failed
from hotloop.worker.known_case import Known
from hotloop.worker.launches import Launches
from hotloop.worker.observation import Observation
from hotloop.worker.reference import build_reference
from hotloop.worker.starts import Starts
from hotloop.worker.untimed import Untimed


def check(body, how):
    """Hold a call with an output like this against the rules of a reference."""
    reference = build_reference(forward(body, "torch.randn(6, 8)"))
    book = CaseBook(reference, "nominal")
    book.add("shipped", 3, cache_bytes=1 << 20)
    kernel = Candidate(language="triton", sources=(SourceFile(path="k.py", text=""),), entry="k.py")
    rules = CallRules(Evaluation(None, board(), kernel, "cpu"), reference)
    seen = Observed.read(
        {
            "launches": 1, "operations": [], "applied": 0, "answers": [], "from_kernels": 1,
            "python_threads": 1, "tasks": 0, "hidden": [], "started": 0,
            "lazy": [{"name": how, "output": 0}],
        }
    )  # fmt: skip
    rules.check(Known(reference, book.cases[0], *book.materialise(book.cases[0])), seen)


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("x.t().contiguous()", "strided"),
        ("x.reshape(2, 3, 8).permute(0, 2, 1).contiguous()", "strided"),
        ("x.mean(1, keepdim=True).repeat(1, 8)", "expanded"),
    ],
)
def test_moves_and_writes_that_are_left_to_the_judges_copy_are_refused(body, how):
    with pytest.raises(Failed) as found:
        check(body, how)
    assert found.value.evidence.kind == "lazy_output"


@pytest.mark.parametrize(
    ("body", "how"),
    [
        ("x.t()", "strided"),
        ("torch.exp(x).t().contiguous()", "strided"),
        ("x.mean(1, keepdim=True).expand(6, 8)", "expanded"),
    ],
)
def test_views_pass_where_the_reference_returns_them_or_does_more(body, how):
    check(body, how)


@pytest.mark.parametrize(
    ("made", "lazy"),
    [
        (lambda: torch.ones(4, 6), []),
        (lambda: torch.ones(6, 4).t(), [{"name": "strided", "output": 0}]),
        (lambda: torch.ones(4, 1).expand(4, 6), [{"name": "expanded", "output": 0}]),
        (lambda: torch.ones(1).expand(1), []),
    ],
)
def test_how_outputs_lie_is_told(made, lazy):
    starts = Starts()
    try:
        observation = Observation(Launches(), lambda _: [made()], DispatchWitness(), starts=starts)
        assert observation.call(Untimed().request(0), [], range(0))[1]["lazy"] == lazy
    finally:
        starts.remove()
