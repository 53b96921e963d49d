"""Fakes of the output: sound checks refuse each, and where one passes the audit says so."""

import dataclasses

import pytest
import torch
from audited import audited, trial
from problem_files import forward

from hotloop.core.audit import Audit, FakeGroup, TrialState
from hotloop.worker.audit import audit, audit_key
from hotloop.worker.audit_subject import Subject, is_same
from hotloop.worker.cases import CaseBook
from hotloop.worker.reference import build_reference

LINEAR = "self.l = torch.nn.Linear(48, 48)"
CAUGHT, ACCEPTED = TrialState.CAUGHT, TrialState.ACCEPTED
SAME, SKIPPED = TrialState.SAME, TrialState.SKIPPED


def states(found, group=FakeGroup.OUTPUT):
    return {t.name: t.state for t in found.trials if t.group is group}


def test_the_checks_of_a_sound_problem_refuse_every_fake():
    found = audited(forward("self.l(x)", "torch.rand(48, 48)", init=LINEAR))
    assert set(states(found).values()) == {CAUGHT}
    assert set(states(found)) >= {
        "zeros", "ones", "the mean everywhere", "an earlier call's result", "copy of x",
        "moved by one along dimension 0", "moved by one along dimension 1", "transposed",
        "last tile zero", "last tile never written", "last tile of an earlier call",
        "last rows zero", "last rows never written", "last rows of an earlier call",
        "one row taken from beside it",
    }  # fmt: skip
    assert found.rankable
    assert found.reasons == found.findings == ()
    assert found.spread_frac["output0"] > 0.1


def test_a_copy_is_the_answer_of_relu_on_the_files_own_values_and_others_catch_it():
    found = audited(forward("torch.relu(x)", "torch.rand(32, 32)"))
    copy = trial(found, "copy of x")
    assert copy.state is CAUGHT
    assert copy.caught_by == "nominal: normal"
    assert copy.passed == copy.same == ("nominal: shipped",)
    assert found.rankable
    assert any("copy of x (nominal: normal)" in text for text in found.findings)


@pytest.mark.parametrize(
    ("body", "fake", "state"),
    [
        ("x * 0", "zeros", ACCEPTED),
        ("x * 0 + 1", "ones", ACCEPTED),
        ("x * 1e-15 + 2", "the mean everywhere", ACCEPTED),
        ("x * 1e-15 + y", "an earlier call's result", ACCEPTED),
        ("x.clone()", "copy of x", SAME),
    ],
)
def test_a_problem_that_lets_a_fake_pass_is_not_ranked(body, fake, state):
    found = audited(forward(body, "torch.rand(32, 32)", "torch.arange(32.)"))
    assert trial(found, fake).state is state
    assert not found.rankable
    assert any(fake in reason for reason in found.reasons)


def test_a_symmetric_result_is_a_finding():
    found = audited(forward("x @ x.T", "torch.rand(32, 32)"))
    assert trial(found, "transposed").state is SAME
    assert found.rankable
    assert any("transposed" in text for text in found.findings)


def test_fakes_that_make_no_sense_are_named_with_the_reason():
    found = audited(forward("x.sum()", "torch.rand(32, 16)"))
    skipped = {t.name: t.why for t in found.trials if t.state is SKIPPED}
    assert skipped["copy of an input"] == "no input has the output's shape"
    assert skipped["moved, transposed or with a part missing"] == "the output has one element"
    assert "the mean everywhere" not in states(found)
    assert found.rankable
    wide = audited(forward("x * 2", "torch.rand(32, 16)"))
    assert trial(wide, "transposed").why == "the output is not square"


def test_one_output_of_several_is_faked_at_a_time():
    found = audited(forward("(x * 2, y * 0)", "torch.rand(16, 16)", "torch.rand(16)"))
    assert trial(found, "output 0: zeros").state is CAUGHT
    assert trial(found, "output 1: zeros").state is ACCEPTED
    assert not found.rankable


def test_a_degenerate_problem_is_not_tried_further():
    found = audited(forward("x * 0", "torch.rand(16, 16)"))
    assert found.reasons[0] == "output 0 is zero everywhere"
    rest = states(found, FakeGroup.PRECISION) | states(found, FakeGroup.DEPENDENCE)
    assert set(rest.values()) == {SKIPPED}


def test_the_problems_own_tolerance_is_part_of_the_checks():
    loaded = forward("x * 1e-15 + 2", "torch.rand(32, 32)")
    assert trial(audited(loaded), "the mean everywhere").state is ACCEPTED
    loaded.problem = dataclasses.replace(loaded.problem, tolerances={"atol": 1e-17, "rtol": 0.0})
    assert trial(audited(loaded), "the mean everywhere").state is CAUGHT


def test_an_audit_that_still_holds_is_not_made_again():
    reference = build_reference(forward("x * 2", "torch.rand(8, 8)"))
    known = Audit(key="k", reasons=("of an earlier load",))

    def none_asked_for():
        raise AssertionError("no case should be looked at")
        yield

    assert audit(reference, none_asked_for(), key="k", known=known) is known
    made = audited(forward("x * 2", "torch.rand(8, 8)"))
    assert not made.is_cut
    again = audit(reference, [], key="other", known=made)
    assert again.key == "other"


def test_an_audit_that_was_cut_is_made_again():
    loaded = forward("x * 2", "torch.rand(8, 8)")
    known = dataclasses.replace(audited(loaded), is_cut=True)
    again = audit(build_reference(loaded), [], key=known.key, known=known)
    assert again.trials == ()  # of no cases; the known one has some


def test_the_key_follows_problem_and_machine_but_not_the_cage():
    machine = {"gpu": None, "torch": "2", "isolation": "T1"}
    key = audit_key("p", machine)
    assert key == audit_key("p", machine | {"isolation": "T2"})
    assert key != audit_key("q", machine)
    assert key != audit_key("p", machine | {"torch": "3"})


def test_results_are_the_same_but_for_float64_rounding():
    golden = torch.tensor([1.0, 2.0, float("inf"), float("nan")], dtype=torch.float64)
    assert is_same(golden * (1 + 1e-12), golden)
    assert not is_same(golden + torch.tensor([1e-6, 0, 0, 0]), golden)
    assert not is_same(torch.tensor([1.0, 2.0, 3.0, float("nan")]), golden)
    assert not is_same(golden[:2], golden)
    assert is_same(torch.tensor([1.0, 2.0]), torch.tensor([1, 2]))


@pytest.mark.slow
def test_large_outputs_are_refused_by_a_glance_only_where_the_gate_refuses_them():
    loaded = forward("x * 2", "torch.rand(2100, 2100)")
    found = audited(loaded)
    assert trial(found, "last tile zero").state is CAUGHT
    assert found.rankable
    reference = build_reference(loaded)
    book = CaseBook(reference, "nominal")
    book.add("normal", 3, cache_bytes=1 << 30)
    draw, goldens = book.materialise(book.cases[0])
    honest = reference.eager(draw)
    subject = Subject(reference, book.cases[0], draw, goldens, honest)
    assert subject.passes({0: honest[0]})
    for place in (0, 2100 * 1050, -1):
        wrong = honest[0].clone()
        wrong.view(-1)[place] += 1
        assert not subject.passes({0: wrong}), place
