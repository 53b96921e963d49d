"""Small values lost beside large ones are explained, in place of an error of the whole."""

from prompt_cases import candidate, norm_task, wrong_values

from hotloop.prompts.feedback import Judged, make_feedback

WRONG = {"shape": [8, 64, 64, 64], "total": 2097152, "mismatches": 524288, "patterns": []}


def told(**details):
    task = norm_task()
    verdict = wrong_values(WRONG | details, rmse=3e-4, eager_rmse=3e-4, golden_rms=1.0)
    judged = Judged(verdict=verdict, candidate=candidate(), problem=task.problem, info=task.info)
    return make_feedback(judged).text


def test_the_cause_is_named():
    text = told(small={"size": 3.7e-9, "error": 0.4})
    assert "3.7e-09 times the output's size, and off by 0.4 times their own" in text
    assert "each row or sample needs its own" in text
    assert "times that of eager" not in text


def test_other_errors_are_told_beside_eagers():
    for details in ({}, {"small": None}, {"small": {"size": 1e-9}}):
        text = told(**details)
        assert "times that of eager" in text
        assert "needs its own" not in text


def test_parts_that_are_off_are_told_beside_what_is_usual_there():
    text = told(times_eager_there=6.9)
    assert "6.9 times as far off as right implementations are there" in text
    assert "times that of eager" not in text


def test_parts_without_an_error_in_right_implementations_are_told_as_such():
    text = told(exact_there=True)
    assert "Right implementations make no error" in text
    assert "inf" not in text.split("make no error")[0][-80:]
