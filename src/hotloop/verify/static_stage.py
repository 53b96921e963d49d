"""The static stage of the ladder as a verdict: the rules that need no judge.

It runs in the coordinator, wherever the judge is, so that what is refused never leaves this
machine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from hotloop.core.candidate import Candidate
from hotloop.core.hopper import why_no_gluon
from hotloop.core.language import GLUON
from hotloop.core.problem import Problem
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.verify.static_rules import Finding, check_candidate


def static_verdict(
    candidate: Candidate,
    problem: Problem,
    tier: Tier,
    *,
    device: str,
    environment: Mapping[str, Any],
) -> Verdict | None:
    """Return the verdict on a candidate that the static rules refuse, None where they let it pass.

    Args:
        candidate: what to look at.
        problem: its policy is what the rules enforce.
        tier: that the verdict is for.
        device: of the judge that would come next.
        environment: of that judge; `isolation` and `gpu` are taken from it.
    """
    start = time.monotonic()
    found = check_candidate(candidate, problem.policy) or _of_another_gpu(
        candidate, device, environment.get("gpu")
    )
    if found is None:
        return None
    has_code = found.rule != "no_code"
    return Verdict(
        status=Status.REJECTED_STATIC if has_code else Status.NO_CODE,
        stage=Stage.STATIC if has_code else Stage.EXTRACT,
        message=found.message,
        candidate_id=candidate.id,
        problem_id=problem.id,
        tier=tier,
        device=device,
        evidence=Evidence(
            kind="policy_violation",
            message=found.message,
            details={"rule": found.rule, "line": found.line},
        ),
        isolation=str(environment.get("isolation") or "T0"),
        precision_policy=problem.policy.precision,
        shape_scope=problem.policy.shape_scope,
        checks=("static",),
        stage_s={"static": time.monotonic() - start},
        environment=environment,
    )


def _of_another_gpu(candidate: Candidate, device: str, gpu: object) -> Finding | None:
    """Refuse Gluon where the judge's GPU is known and has none of what it is written for."""
    text = why_no_gluon(device, gpu) if candidate.language == GLUON.name else None
    return None if text is None else Finding("language", text)
