"""First drafts with and without examples: paired by problem, and nothing else is compared."""

import pytest
from test_kernelbench_results import write_suite

from benchmarks import examples_effect


def row(speed_with, speed_without):
    def arm(speed):
        status = "PASSED" if speed else "INCORRECT_NUMERICAL"
        return {"status": status, "speedup": speed}

    return {"with": arm(speed_with), "without": arm(speed_without)}


def test_only_problems_that_both_arms_solved_are_compared_for_speed():
    rows = [row(2.0, 1.0), row(1.0, 1.0), row(None, 3.0), row(5.0, None)]
    found = examples_effect.summarise(rows)
    assert (found["problems"], found["passed_with"], found["passed_without"]) == (4, 3, 3)
    assert found["both_passed"] == 2
    assert found["geomean_with"] == pytest.approx(2**0.5)
    assert found["geomean_without"] == pytest.approx(1.0)
    assert (found["faster_with"], found["slower_with"]) == (1, 0)
    low, high = found["ratio_ci"]
    assert low == pytest.approx(1.0)
    assert high == pytest.approx(2.0)


def test_nothing_solved_gives_no_speed():
    assert "geomean_with" not in examples_effect.summarise([row(None, None)])


def test_a_suite_without_a_common_problem_is_refused(tmp_path):
    one, two = write_suite(tmp_path / "one"), write_suite(tmp_path / "two")
    with pytest.raises(ValueError, match="no judged problem in common"):
        examples_effect.compare(one, two)  # nothing there was asked of a model
