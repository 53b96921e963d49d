"""Which of the gate's rules a call was held to is for people: no model is told."""

from dataclasses import replace

import pytest
from prompt_cases import candidate, case, norm_task, passed, wrong_values

from hotloop.core.verdict import Correctness, Rigour
from hotloop.prompts.feedback import Judged, make_feedback


def feedback(verdict):
    task = norm_task()
    return make_feedback(
        Judged(verdict=verdict, candidate=candidate(), problem=task.problem, info=task.info)
    )


@pytest.mark.parametrize("rigour", list(Rigour))
@pytest.mark.parametrize("rule", ["bulk", "nonfinite"])
def test_a_failure_reads_alike_under_any_rules(rigour, rule):
    fields = {"profile": "far", "rule": rule, "rmse": None if rule == "nonfinite" else 0.02}
    assert feedback(wrong_values(rigour=rigour, **fields)) == feedback(wrong_values(**fields))
    assert feedback(wrong_values(**fields)) != feedback(wrong_values(rmse=0.3))  # it tells much


@pytest.mark.parametrize("rigour", list(Rigour))
def test_a_success_reads_alike_under_any_rules(rigour):
    cases = (case(passed=True, rule=None, rigour=rigour),)
    verdict = replace(passed(), correctness=Correctness(cases=cases, deterministic=True))
    assert feedback(verdict) == feedback(passed())
