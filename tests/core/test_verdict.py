"""Verdicts that contradict themselves cannot be built."""

import pytest

from hotloop.core.verdict import Evidence, Performance, Stage, Status, Tier, Verdict

PERFORMANCE = Performance(latency_ms=1.0, spread_ms=0.1, samples=3, timer="cupti", l2="cold")
EVIDENCE = Evidence(kind="wrong_values", message="off by one")


def verdict(status, device="cuda", **fields):
    return Verdict(
        status=status,
        stage=Stage.PERFORMANCE,
        message="",
        candidate_id="c",
        problem_id="p",
        tier=Tier.FAST,
        device=device,
        **fields,
    )


def test_honest_verdicts_can_be_built():
    assert verdict(Status.PASSED, performance=PERFORMANCE).passed
    assert not verdict(Status.INCORRECT_NUMERICAL, evidence=EVIDENCE).passed
    assert verdict(Status.PASSED, device="cpu").passed


@pytest.mark.parametrize(
    ("status", "fields", "why"),
    [
        (Status.PASSED, {"evidence": EVIDENCE}, "no evidence"),
        (Status.TIMEOUT, {}, "needs evidence"),
        (Status.TIMEOUT, {"evidence": EVIDENCE, "performance": PERFORMANCE}, "no performance"),
        (Status.PASSED, {"device": "cpu", "performance": PERFORMANCE}, "no performance on 'cpu'"),
    ],
)
def test_a_contradiction_is_refused(status, fields, why):
    with pytest.raises(ValueError, match=why):
        verdict(status, **fields)
