"""Inputs on which the gate says nothing are left out and told of; the gate is never widened."""

import pytest
import torch
from problem_files import forward

from hotloop.core.verdict import Status
from hotloop.errors import ProblemError
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import make_bound, reseeded
from hotloop.worker.correctness import CorrectnessStage
from hotloop.worker.evaluation import Failed
from hotloop.worker.reference import build_reference

CANCELS = "(x + 1e14) - 1e14"


def test_ill_conditioned_profiles_are_left_out_with_a_note_and_the_others_judge():
    body = "torch.where(x.mean() > 1.2, (x + 1e8) - 1e8, x * 2)"  # positive_mean alone cancels
    reference = build_reference(forward(body, "torch.rand(32, 64)"))
    assert "shipped" in reference.profiles
    assert "positive_mean" not in reference.profiles
    assert any("'positive_mean' left out" in n and "conditioned" in n for n in reference.notes)


def test_a_problem_that_no_values_can_judge_is_refused():
    with pytest.raises(ProblemError, match="ill-conditioned"):
        build_reference(forward(CANCELS, "torch.rand(32, 64)"))


class Flaky:
    """A reference whose float32 result is off by `error` from the second draw on."""

    def __init__(self, reference):
        self._reference = reference
        self.error = 0.0

    def __getattr__(self, name):
        return getattr(self._reference, name)

    def eager(self, draw):
        return tuple(t + self.error for t in self._reference.eager(draw))

    def envelope(self, draw):
        return {**self._reference.envelope(draw), "eager": self.eager(draw)}


def test_a_new_draw_that_is_ill_conditioned_is_left_out_and_all_of_them_is_inconclusive():
    reference = Flaky(build_reference(forward("x * 2 + 1", "torch.rand(32, 64)")))
    known = CaseBook(reference, "nominal")
    known.add("shipped", 3, cache_bytes=0)
    book = CaseBook(reference, "nominal")
    book.add_like(known.cases[0], 4)
    assert len(book.cases) == 1
    reference.error = 1.0
    void = CaseBook(reference, "nominal")
    void.add_like(known.cases[0], 5)
    assert void.cases == []
    assert any("ill-conditioned" in note for note in void.notes)
    with pytest.raises(Failed) as failed:
        CorrectnessStage(None).run([void], 1.0)
    assert failed.value.status is Status.INCONCLUSIVE


def test_a_member_that_is_not_finite_voids_a_renewed_bound_too():
    golden = torch.ones(10, dtype=torch.float64)
    known = make_bound(golden, [golden.float()], torch.float32, exact=False)
    broken = golden.float()
    broken[3] = float("inf")
    assert reseeded(known, golden, [golden.float()]).conditioning < 0.1
    assert reseeded(known, golden, [broken]).conditioning == float("inf")


def test_a_golden_beyond_the_output_type_voids_the_bound():
    golden = torch.full((10,), 1e6, dtype=torch.float64)
    bound = make_bound(golden, [golden.half()], torch.float16, exact=False)
    assert bound.conditioning == float("inf")
