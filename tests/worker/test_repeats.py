"""Calls that ought to be alike and are not: fewer launches unwatched, or on values met before."""

import pytest
import torch
from problem_files import forward

from hotloop.worker.cases import CaseBook
from hotloop.worker.evaluation import Failed
from hotloop.worker.known_case import Known
from hotloop.worker.other_values import other_values, with_goldens
from hotloop.worker.reference import build_reference
from hotloop.worker.repeats import Repeats
from hotloop.worker.untimed import WatchedCall


@pytest.fixture(scope="module")
def known():
    weight = "self.w = torch.nn.Parameter(torch.randn(8))"
    reference = build_reference(forward("x * self.w", "torch.randn(6, 8)", init=weight))
    book = CaseBook(reference, "nominal")
    book.add("shipped", 3, cache_bytes=1 << 20)
    return Known(reference, book.cases[0], *book.materialise(book.cases[0]))


def call(launches=1, work=0):
    return WatchedCall([], work=work, launches=launches)


def repeats(known, watched, bare):
    made = Repeats(known)
    for launches in watched:
        made.add(call(launches), bare=False)
    for launches in bare:
        made.add(call(launches), bare=True)
    assert len(made) == len(watched) + len(bare)
    return made


@pytest.mark.parametrize(
    ("watched", "bare", "refused"),
    [([1], [0], True), ([2, 2], [1, 1], True), ([1], [1], False), ([1], [2], False),
     ([1, 3], [2, 2], False), ([2, 2], [1, 2], False), ([0], [0], False), ([1], [], False)],
)  # fmt: skip
def test_fewer_launches_where_nobody_watches_are_refused(known, watched, bare, refused):
    made = repeats(known, watched, bare)
    assert (made.difference is not None) == refused
    if refused:
        with pytest.raises(Failed, match="fewer kernels"):
            made.check_alike()
    else:
        made.check_alike()


class Forward:
    """Launches one kernel, and `more` on values that it met least recently."""

    def __init__(self, more):
        self.more, self.met, self.calls = more, None, 0

    def __call__(self, known):
        self.calls += 1
        x = known.draw.inputs[0]
        is_met = self.met is not None and torch.equal(self.met, x)
        self.met = x.clone()
        return call(1 if is_met else 1 + self.more)


def test_results_that_are_kept_for_values_met_before_are_refused(known):
    with pytest.raises(Failed, match="keeps results") as found:
        repeats(known, [1], [1]).check_kept(call(2), Forward(more=1))
    assert found.value.evidence.kind == "kept_result"


@pytest.mark.parametrize(("first", "asked"), [(3, 3), (1, 0)])
def test_a_first_call_that_tunes_is_asked_on_other_values(known, first, asked):
    forward = Forward(more=0)
    repeats(known, [1], []).check_kept(call(first), forward)
    assert forward.calls == asked


def test_other_values_are_new_and_leave_the_case_as_it_is(known):
    before = known.draw.inputs[0].clone()
    other = other_values(known)
    assert torch.equal(known.draw.inputs[0], before)
    assert not torch.equal(other.draw.inputs[0], before)
    assert other.draw.state is known.draw.state
    judged = with_goldens(other)
    assert judged.is_right([other.draw.inputs[0] * other.draw.state["w"]])
    assert not judged.is_right([before * other.draw.state["w"]])
