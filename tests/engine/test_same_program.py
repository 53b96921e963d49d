"""A candidate that is the same program as an earlier one takes its verdict over."""

from dataclasses import replace

import pytest

from hotloop.core.attempt import Written
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.space import Dimension, Space
from hotloop.core.verdict import Status, Tier
from hotloop.errors import WorkerDied
from hotloop.testing.fakes import FakeGenerator, FakeVerifier

SPACE = Space(
    dimensions=(
        Dimension(name="value", choices=(1, 2), ordered=True),
        Dimension(name="comment", choices=("a", "b")),
    ),
    starts=(),
)
"""Four candidates, two programs."""


class Commenting(FakeGenerator):
    """Writes programs that differ in a constant, with different comments."""

    def __init__(self):
        super().__init__(SPACE)

    def generate(self, info, proposal, *, deadline_s=None):
        point = proposal.point
        text = f"VALUE = {point['value']}  # {point['comment']}\n"
        source = SourceFile(path="kernel.py", text=text)
        return Written(candidate=Candidate(language="triton", sources=(source,)))


@pytest.fixture
def twins(bench):
    """A bench whose fast tier takes 1 ms for each candidate, and the final tier as well."""
    bench.verifier.behaviour = lambda pins, tier: 1.0
    return replace(bench, generator=Commenting())


def test_the_same_program_is_judged_once_and_another_constant_is_judged(twins):
    result = twins.run()
    assert len(result.attempts) == 4
    assert all(a.verdict.passed for a in result.attempts)
    assert len(twins.verifier.verified(Tier.FAST)) == 2
    taken = [a for a in result.attempts if a.verdict.candidate_id != a.candidate_id]
    assert len(taken) == 2
    assert all("the same program as candidate" in a.notes[-1] for a in taken)
    judged = [a for a in result.attempts if a not in taken]
    assert all(a.notes == () for a in judged)


def test_what_was_taken_over_costs_no_final_tier_and_is_not_reported(twins):
    result = twins.run()
    finals = twins.verifier.verified(Tier.FINAL)
    taken = {a.candidate_id for a in result.attempts if a.verdict.candidate_id != a.candidate_id}
    assert len(finals) == 2
    assert not taken & set(finals)
    best = next(a for a in result.attempts if a.id == result.best_attempt_id)
    assert best.verdict.candidate_id == best.candidate_id


def test_it_is_known_in_the_next_session(twins):
    twins.run(max_candidates=2)
    later = twins.resumed()
    later.verifier.behaviour = twins.verifier.behaviour
    later.run()
    assert len(twins.verifier.verified(Tier.FAST)) + len(later.verifier.verified(Tier.FAST)) == 2


def test_a_failure_is_judged_again(twins):
    """A compiler reads comments too: what it objected to may be mended by changing one."""
    twins.verifier.behaviour = lambda pins, tier: Status.INCORRECT_NUMERICAL
    result = twins.run()
    assert {a.verdict.status for a in result.attempts} == {Status.INCORRECT_NUMERICAL}
    assert len(twins.verifier.verified(Tier.FAST)) == 4


def test_what_the_machine_could_not_judge_is_judged_again(twins):
    """Three failures set one apart: that says nothing of its program."""
    left, first = [3], []

    def fail(candidate, tier):
        first[:] = first or [candidate.id]
        if left[0] and candidate.id == first[0]:
            left[0] -= 1
            raise WorkerDied("the judge ended")

    twins.verifier.on_verify = fail
    result = twins.run()
    statuses = [a.verdict.status for a in result.attempts]
    assert statuses.count(Status.INCONCLUSIVE) == 1
    assert statuses.count(Status.PASSED) == 3


class Watchful(FakeVerifier):
    """Takes turns that are always free, and is told what needs none."""

    def __init__(self):
        super().__init__()
        self.waited_s = 0.0
        self.spared = []

    def pause_by(self, paused):
        pass

    def needs_no_turn(self, candidate):
        self.spared.append(candidate.id)


def test_a_judge_that_takes_turns_is_told_what_does_not_come(twins):
    verifier = Watchful()
    verifier.behaviour = twins.verifier.behaviour
    result = replace(twins, verifier=verifier).run()
    taken = {a.candidate_id for a in result.attempts if a.verdict.candidate_id != a.candidate_id}
    assert set(verifier.spared) == taken
    assert len(taken) == 2
