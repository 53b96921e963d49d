from hotloop.core.attempt import Proposal
from hotloop.core.verdict import Status, Tier
from hotloop.testing.fakes import Costs, FakeGenerator, FakeVerifier, make_problem

POINT = {"BLOCK": 64, "num_warps": 8, "split": False}


def candidate(point):
    info = FakeVerifier().load(make_problem())
    proposal = Proposal(id=1, action="schedule", point=point)
    return FakeGenerator().generate(info, proposal).candidate


def test_a_verifier_moves_its_clock_and_keeps_its_word():
    verifier = FakeVerifier(costs=Costs(load_s=5.0, fast_s=1.0, final_s=7.0))
    verifier.load(make_problem())
    fast = verifier.verify(candidate(POINT), Tier.FAST)
    final = verifier.verify(candidate(POINT), Tier.FINAL)
    assert verifier.clock() == 13.0
    assert fast.performance.latency_ms == final.performance.latency_ms == 0.6
    assert verifier.verified(Tier.FINAL) == [candidate(POINT).id]


def test_a_failing_point_has_evidence():
    verdict = FakeVerifier().verify(candidate({**POINT, "BLOCK": 128, "num_warps": 1}), Tier.FAST)
    assert verdict.status is Status.COMPILE_ERROR
    assert verdict.evidence is not None


def test_on_cpu_there_is_no_performance():
    verdict = FakeVerifier(device="cpu").verify(candidate(POINT), Tier.FAST)
    assert verdict.passed
    assert verdict.performance is None
    assert verdict.resources


def test_candidates_differ_exactly_when_their_points_do():
    assert candidate(POINT).id == candidate(dict(POINT)).id
    assert candidate(POINT).id != candidate({**POINT, "BLOCK": 32}).id
