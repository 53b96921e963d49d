"""Solve rate and speed-up over a budget: every problem counts at every point."""

import pytest
from suite_figure_runs import Made, run_at

from hotloop.core.verdict import Status
from hotloop.suite.figures import suite_figures

WRONG = Status.INCORRECT_NUMERICAL


def draw(*runs):
    found = suite_figures(runs)["columns"]["model/as_shipped/cuda"]
    return found["curves"]["together"], found["together"]["all"]


@pytest.fixture
def drawn(tmp_path):
    """1/1: 2 ms with call 1 and 1 ms with call 3; 1/2: 4 ms with call 2; 1/3 failed; 1/4 no run."""
    return draw(
        run_at(tmp_path, 1, Made(outcomes=(2.0, WRONG, 1.0), finals={1: 2.0, 3: 1.0})),
        run_at(tmp_path, 2, Made(outcomes=(WRONG, 4.0), finals={2: 4.0})),
        run_at(tmp_path, 3, Made(outcomes=(WRONG,))),
        run_at(tmp_path, 4),
    )


def test_the_solve_rate_is_of_all_problems(drawn):
    curves, _ = drawn
    assert curves["calls"]["solve_rate"] == [[0.0, 0.0], [1.0, 0.25], [2.0, 0.5]]
    assert curves["tokens"]["solve_rate"] == [[0.0, 0.0], [100.0, 0.25], [200.0, 0.5]]
    assert curves["time_s"]["solve_rate"] == [[0.0, 0.0], [10.0, 0.25], [20.0, 0.5]]
    assert curves["calls"]["problems"] == 4


def test_the_speed_up_counts_the_unsolved_as_one(drawn):
    curves, _ = drawn
    # Over eager (4 ms): 2 with call 1, then 4 with call 3; 1/2 has 1.0; the others count as 1.0.
    eager = curves["calls"]["speedup"]["eager"]
    assert [at for at, _ in eager] == [0.0, 1.0, 3.0]
    assert [x for _, x in eager] == pytest.approx([1.0, 2**0.25, 4**0.25])
    # Over compiled (2 ms): 1 with call 1, 0.5 of 1/2 with call 2, 2 with call 3.
    compiled = curves["calls"]["speedup"]["compile"]
    assert [at for at, _ in compiled] == [0.0, 2.0, 3.0]
    assert [x for _, x in compiled] == pytest.approx([1.0, 0.5**0.25, 1.0])


def test_a_curve_ends_at_the_figure_of_the_table(drawn):
    curves, group = drawn
    for axis in ("time_s", "calls", "tokens"):
        assert curves[axis]["solve_rate"][-1][1] == group["correct"] / group["problems"]
        for name in ("eager", "compile", "better_of_both"):
            end = curves[axis]["speedup"][name][-1][1]
            assert end == pytest.approx(group["speedup"][name]["geometric_mean"])


def test_the_fast_tier_has_curves_of_its_own(tmp_path):
    refuted = Made(outcomes=(1.0, 2.0), finals={1: WRONG})
    curves, _ = draw(run_at(tmp_path, 1, refuted), run_at(tmp_path, 2, Made(outcomes=(1.0,))))
    calls = curves["calls"]
    assert calls["solve_rate"] == [[0.0, 0.0]]
    assert calls["speedup"]["eager"] == [[0.0, 1.0]]
    # 1/1's first kernel was refuted; its second ties with compiled code, 1/2 is twice as fast.
    assert calls["fast_tier_solve_rate"] == [[0.0, 0.0], [1.0, 0.5], [2.0, 1.0]]
    assert calls["fast_tier_speedup"] == [[0.0, 1.0], [1.0, pytest.approx(2**0.5)]]


def test_a_slower_kernel_after_a_faster_one_changes_nothing(tmp_path):
    made = Made(outcomes=(1.0, 2.0), finals={1: 1.0, 2: 2.0})
    calls = draw(run_at(tmp_path, 1, made))[0]["calls"]
    assert calls["speedup"]["eager"] == [[0.0, 1.0], [1.0, pytest.approx(4.0)]]
    assert calls["fast_tier_speedup"] == [[0.0, 1.0], [1.0, pytest.approx(2.0)]]


def test_unknown_tokens_are_no_point_at_nothing(tmp_path):
    silent = Made(outcomes=(1.0,), finals={1: 1.0}, tokens=(None,))
    known = Made(outcomes=(1.0,), finals={1: 1.0})
    curves, _ = draw(run_at(tmp_path, 1, silent), run_at(tmp_path, 2, known))
    assert curves["tokens"]["unknown"] == ["1/1"]
    assert curves["tokens"]["solve_rate"] == [[0.0, 0.0], [100.0, 0.5]]
    assert curves["calls"]["unknown"] == []
    assert curves["calls"]["solve_rate"][-1] == [1.0, 1.0]


def test_a_curve_with_nothing_known_is_none(tmp_path):
    silent = Made(outcomes=(1.0,), finals={1: 1.0}, tokens=(None,))
    curves, _ = draw(run_at(tmp_path, 1, silent), run_at(tmp_path, 2, Made(outcomes=(WRONG,))))
    assert curves["tokens"]["solve_rate"] is None
    assert curves["tokens"]["fast_tier_speedup"] is None
    assert curves["calls"]["solve_rate"] == [[0.0, 0.0], [1.0, 0.5]]


@pytest.mark.parametrize(("is_parallel", "calls"), [(False, 1), (True, 3)])
def test_a_call_under_way_beside_it_is_paid_for(tmp_path, is_parallel, calls):
    made = Made(outcomes=(1.0, WRONG, WRONG), finals={1: 1.0}, is_parallel=is_parallel)
    curves, group = draw(run_at(tmp_path, 1, made))
    assert curves["calls"]["solve_rate"] == [[0.0, 0.0], [float(calls), 1.0]]
    assert group["to_best"]["tokens"]["median"] == 100 * calls
