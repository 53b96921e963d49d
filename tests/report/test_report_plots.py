"""Scales, axes and curves: what is drawn stands where its number says."""

import math
import re

import pytest

from hotloop.report import plots, plots_problems, svg
from hotloop.report.metrics import Speedup
from hotloop.report.page import Beside, ProblemPage


def beside(ratio, state="measured", spread=0.1):
    if ratio is None:
        return Beside(state="unsolved")
    return Beside(
        state=state, speedup=Speedup(ratio=ratio, low=ratio - spread, high=ratio + spread)
    )


def problem(number, found, title="ReLU"):
    return ProblemPage(
        key=f"1-{number}", name=f"1/{number}", title=title, level="1", operator_class="conv",
        column="m/a/cuda", device="cuda", state="done", status="PASSED",
        beside=dict.fromkeys(plots.BASELINE_NAMES, found),
    )  # fmt: skip


def test_a_scale_maps_its_ends_and_holds_what_lies_outside():
    scale = svg.Scale(low=0.0, high=10.0, start=100.0, end=0.0)
    assert [scale(v) for v in (0, 5, 10, 99, -1)] == [100, 50, 0, 0, 100]
    log = svg.Scale(low=0.1, high=10.0, start=0.0, end=2.0, is_log=True)
    assert log(1.0) == pytest.approx(1.0)


@pytest.mark.parametrize("ends", [(0, 1), (0, 0.003), (0, 7), (0, 86400), (0.97, 1.31), (1, 17)])
def test_ticks_are_few_and_within(ends):
    found = svg.Scale(low=ends[0], high=ends[1], start=0, end=1).ticks()
    assert 2 <= len(found) <= 8
    assert all(ends[0] - 1e-9 <= t <= ends[1] * (1 + 1e-9) for t in found)


@pytest.mark.parametrize("ends", [(0.7, 1.4), (0.5, 30), (0.01, 1000)])
def test_log_ticks_have_the_one(ends):
    found = svg.Scale(low=ends[0], high=ends[1], start=0, end=1, is_log=True).ticks()
    assert 2 <= len(found) <= 9
    assert any(math.isclose(t, 1.0) for t in found)


def test_text_and_attributes_are_escaped():
    made = svg.element("text", "<b>&", class_='"x', text_anchor=None, data_n=1.5)
    assert made == '<text class="&#34;x" data-n="1.5">&lt;b&gt;&amp;</text>'


def test_fast_p_falls_at_each_claimed_ratio():
    found = [beside(2.0), beside(0.9), beside(1.0, "unclaimed"), beside(None)]
    without = Beside(state="without")
    assert plots.fast_p_points([*found, without]) == [[0.0, 0.5], [0.9, 0.25], [2.0, 0.0]]
    assert plots.fast_p_points([without]) == []


def test_no_fast_p_before_a_kernel_is_verified():
    plot = plots.fast_p_plot("x", [problem(1, beside(None))])
    assert plot.picture is None
    assert "not measured" in plot.note
    assert plots.fast_p_plot("x", [problem(1, beside(2.0))]).picture is not None


CURVE = {
    "solve_rate": [[0.0, 0.0], [60.0, 0.5], [600.0, 1.0]],
    "fast_tier_solve_rate": [[0.0, 0.0], [30.0, 1.0]],
    "speedup": {"better_of_both": [[0.0, 1.0], [60.0, 3.0]]},
    "fast_tier_speedup": [[0.0, 1.0]],
    "unknown": [],
}


def test_curves_have_a_line_for_each_level_that_rises():
    rate = plots.solve_rate_plot("time_s", {"1": CURVE, "2": CURVE})
    assert [k.label for k in rate.keys] == [
        "level 1", "level 1, fast tier", "level 2", "level 2, fast tier"
    ]  # fmt: skip
    assert "minutes" in rate.picture
    assert rate.note == ""
    speedup = plots.speedup_plot("calls", {"1": CURVE})
    assert [k.label for k in speedup.keys] == ["level 1"], "the other one never rises"
    assert "model calls" in speedup.picture


def test_a_curve_of_unknown_spending_says_so():
    unknown = dict.fromkeys(CURVE, None) | {"unknown": ["1/1", "1/2"]}
    plot = plots.solve_rate_plot("tokens", {"1": unknown})
    assert plot.picture is None
    assert "2 problem(s)" in plot.note


def test_kernels_that_cost_nothing_of_a_kind_are_no_curve_of_it():
    free = {"fast_tier_solve_rate": [[0.0, 1.0]], "unknown": []}
    assert plots.solve_rate_plot("calls", {"1": free}).note == "none: no model calls spent"
    nothing = {"fast_tier_solve_rate": [[0.0, 0.0]], "unknown": []}
    assert "no kernel is found" in plots.solve_rate_plot("calls", {"1": nothing}).note


def test_problems_are_sorted_with_intervals_and_failures_apart():
    made = [problem(1, beside(1.5)), problem(2, beside(3.0)), problem(3, beside(None)),
            problem(4, beside(1.0, "unclaimed")), problem(5, Beside(state="without")),
            problem(6, beside(0.9), title="<b>")]  # fmt: skip
    plot = plots_problems.speedups_plot("level 1", made, plots.BETTER)
    order = re.findall(r"<title>(1/\d)", plot.picture)
    assert order == ["1/2", "1/1", "1/4", "1/6", "1/3"]
    assert re.findall(r'class="mark (\w+)"', plot.picture) == [
        "win", "win", "unclaimed", "even", "failed"
    ]  # fmt: skip
    assert "1/2 ReLU: 3.00x [2.90 to 3.10]" in plot.picture
    assert "1/6 &lt;b&gt;" in plot.picture
    assert plot.note.startswith("1 problem(s) without")
    none = plots_problems.speedups_plot("level 1", [problem(1, beside(None))], plots.BETTER)
    assert none.picture is None


def test_every_status_has_a_place_among_the_outcomes():
    statuses = {"PASSED": 2, "FINAL_TIMEOUT": 1, "FINAL_INCORRECT_NUMERICAL": 1, "NO_RUN": 1,
                "UNREADABLE": 1, "NO_KERNEL": 3}  # fmt: skip
    assert plots_problems.outcomes(statuses) == {
        "PASSED": 2, "FINAL": 2, "NO_KERNEL": 3, "OTHER": 2
    }  # fmt: skip


def test_many_problems_have_the_whole_width():
    few, many = (
        plots_problems.speedups_plot("x", [problem(n, beside(2.0)) for n in range(k)], plots.BETTER)
        for k in (plots_problems.FEW, plots_problems.FEW + 1)
    )
    assert (few.is_wide, many.is_wide) == (False, True)
    for plot in (few, many):
        width = float(re.search(r'viewBox="0 0 (\d+)', plot.picture)[1])
        at = [float(x) for x in re.findall(r'cx="([\d.]+)"', plot.picture)]
        assert 0 < min(at) < max(at) < width
