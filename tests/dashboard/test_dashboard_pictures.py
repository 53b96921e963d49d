"""The dashboard's pictures and differences: they show what the records say and no more."""

import re
from dataclasses import replace

import pytest
from dashboard_runs import WRONG, measured, open_run, write_run

from hotloop.core.attempt import Attempt, Budget
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.dashboard.plot_budget import _points, burn_down_plot, limits_of
from hotloop.dashboard.plot_errors import Span, Spans, error_plot, spans_of
from hotloop.dashboard.plot_lineage import MOST, Spot, layout, lineage_plot
from hotloop.dashboard.plot_progress import best_so_far, curve_of, progress_plot
from hotloop.dashboard.plot_roofline import roofline_plot
from hotloop.dashboard.plot_timing import timing_plot
from hotloop.dashboard.source_diff import compare_files
from hotloop.dashboard.state import read_state


def attempt(n, *parents):
    return Attempt(
        id=n, action="draft", point={}, parents=parents, generator="model", candidate_id=f"c{n}",
        verdict=None, objective=None, started_s=0.0, finished_s=None,
    )  # fmt: skip


def evidence(**details):
    return Evidence(kind="wrong_values", message="wrong", details={**WRONG, **details})


def numbers(picture, name, attribute):
    return [float(v) for v in re.findall(rf'<{name} [^>]*\b{attribute}="([-\d.e+]+)"', picture)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, Spans((Span(2, 9),), True)),
        ({"kind": "one", "at": 2}, Spans((Span(2, 9),), True)),
        ({"kind": "range", "from": 2, "to": 9}, Spans((Span(2, 9),), True)),
        ({"kind": "every", "step": 4, "from": 2}, Spans((Span(2, 2), Span(6, 6), Span(10, 10)),
                                                        True)),
        ({"kind": "period", "period": 4, "from": 2, "to": 3},
         Spans((Span(2, 3), Span(6, 7), Span(10, 11)), True)),
        ({"kind": "some", "count": 3}, Spans((Span(2, 9),), False)),
        ({"kind": "every", "step": 0, "from": 2}, Spans((Span(2, 9),), False)),
        ({"kind": "every", "step": "x", "from": 2}, Spans((Span(2, 9),), False)),
        ({"kind": "period", "period": 4, "from": 3, "to": 1}, Spans((Span(2, 9),), False)),
        ({"kind": "every", "step": 4}, Spans((Span(2, 9),), False)),
        ({"kind": "of no kind"}, Spans((Span(2, 9),), False)),
    ],
)  # fmt: skip
def test_wrong_indices_are_those_that_the_evidence_names(pattern, expected):
    assert spans_of(pattern, Span(2, 9), 12) == expected


def test_very_many_spans_become_one_that_is_lighter():
    pattern = {"kind": "every", "step": 2, "from": 1}
    assert spans_of(pattern, Span(1, 9999), 10_000) == Spans((Span(1, 9999),), False)


def test_an_error_map_marks_the_region_and_the_samples():
    plot = error_plot(evidence(), None, is_attention=True)
    assert "query row" in plot.picture
    (region, *strips) = re.findall(r'class="region" d="([^"]+)"', plot.picture)
    assert region == "M96 251h212.13v75h-212.13z", "rows 192 to 255 of 256 at all columns"
    assert len(strips) == 2
    assert re.findall(r'class="spot (\w+)"', plot.picture) == ["high", "low", "nan"]
    assert "[0, 1, 200, 64]: got 1.5, expected 0.25, the worst" in plot.picture
    assert "19.0 % of the elements are" in plot.note


def test_an_error_map_of_one_dimension_and_of_a_triangle():
    line = error_plot(
        evidence(shape=[64], box=[[8, 15]], patterns=[], samples=[{"index": [9], "got": "1",
                 "expected": "2"}]), None, is_attention=False)  # fmt: skip
    assert 'class="region"' in line.picture
    square = {"shape": [64, 64], "box": [[0, 63], [0, 63]], "patterns": [], "samples": []}
    above = error_plot(evidence(**square, diagonal="above"), None, is_attention=False)
    assert 'd="M96 26L396 26L396 326z"' in above.picture
    below = error_plot(evidence(**square, diagonal="below"), None, is_attention=False)
    assert 'd="M96 26L96 326L396 326z"' in below.picture


@pytest.mark.parametrize(
    "details",
    [
        {}, {"log": "error: x"}, {"shape": [2, 2]}, {"shape": "x", "box": 7},
        {"shape": [], "box": [], "samples": []},
        {"shape": [0, 4], "box": [[0, 0], [0, 0]], "patterns": [{"dim": "x"}], "samples": 3},
        {"shape": [4, 4], "box": [[9, 99], [-5, 2]], "patterns": [{"dim": 0, "kind": "every",
         "step": -1, "from": 3}], "samples": [{"index": [99, -3], "got": "x", "expected": ""}]},
        {"shape": [4, 4], "box": [[0, 3]], "samples": [{"index": [1], "got": "1"}]},
    ],
)  # fmt: skip
def test_evidence_of_another_form_is_no_picture_or_one_within_its_frame(details):
    plot = error_plot(Evidence(kind="k", message="m", details=details), None, is_attention=False)
    if plot is not None:
        inside = numbers(plot.picture, "circle", "cx") + numbers(plot.picture, "rect", "x")
        assert all(90 <= x <= 400 for x in inside)


def test_lanes_follow_descent_and_are_used_again():
    shown = [attempt(1), attempt(2, 1), attempt(3, 1), attempt(4, 2), attempt(5), attempt(6, 3)]
    assert layout(shown) == {
        1: Spot(0, 0), 2: Spot(1, 0), 3: Spot(2, 1), 4: Spot(3, 0), 5: Spot(4, 0), 6: Spot(5, 1),
    }  # fmt: skip
    alone = layout([attempt(n) for n in range(1, 9)])
    assert {spot.lane for spot in alone.values()} == {0}, "what stands alone stands in a row"


def test_of_very_many_attempts_the_way_to_the_best_is_drawn(tmp_path):
    write_run(tmp_path / "r", [1.0, 2.0], parents={2: (1,)})
    state = read_state(tmp_path / "r")
    many = tuple(replace(state.attempts[1], id=n, parents=(n - 1,)) for n in range(2, 1001))
    best = state.attempts[0]
    big = replace(state, attempts=(best, *many), best=best)
    plot = lineage_plot(big, "/run/x/attempt/")
    shown = [int(n) for n in re.findall(r'href="/run/x/attempt/(\d+)"', plot.picture)]
    assert len(shown) == MOST
    assert {1, 1000, 999} <= set(shown)
    assert plot.note.startswith(f"{1000 - MOST} older attempts are not drawn")


def test_circles_and_missing_parents_do_not_hold_the_graph_up(tmp_path):
    write_run(tmp_path / "r", [1.0, 1.0, 1.0], parents={1: (3,), 2: (2,), 3: (77,)})
    assert lineage_plot(read_state(tmp_path / "r"), "/").picture.count("<a ") == 3


def test_a_curve_steps_where_the_best_changes():
    passed = [(10.0, 1.0, 2), (5.0, 0.5, 1), (20.0, 0.9, 3), (30.0, 2.0, 4)]
    assert [n for *_, n in best_so_far(passed, is_ratio=True)] == [1, 2, 4]
    assert [n for *_, n in best_so_far(passed, is_ratio=False)] == [1]


def test_a_curve_on_a_cpu_is_of_the_cost_and_says_so(tmp_path):
    write_run(tmp_path / "r", [1.5, 1.25, Status.TIMEOUT], device="cpu")
    state = read_state(tmp_path / "r")
    plot = progress_plot([state], [curve_of(state, "this run", "/")])
    assert "CPU: nothing is timed" in plot.title
    assert not re.search(r"\dx<|speed", plot.picture)
    assert plot.picture.count('class="step') == 2


def test_a_curve_without_a_baseline_is_of_times_and_an_empty_one_says_so(tmp_path):
    write_run(tmp_path / "r", [Status.TIMEOUT, 2.0])
    state = read_state(tmp_path / "r")
    bare = replace(state, info=replace(state.info, baselines_ms={}))
    assert progress_plot([bare], [curve_of(bare, "r", "/")]).title == "Best time so far, fast tier"
    none = replace(state, attempts=state.attempts[:1], best=None)
    plot = progress_plot([none], [curve_of(none, "r", "/")])
    assert (plot.picture, plot.note) == (None, "no attempt has passed yet")


def verdict(**changes):
    made = Verdict(status=Status.PASSED, stage=Stage.PERFORMANCE, message="", candidate_id="c",
                   problem_id="p", tier=Tier.FINAL, device="cuda")  # fmt: skip
    return replace(made, performance=measured(1.0, is_final=True), **changes)


def test_a_roofline_has_its_points_under_the_roof(tmp_path):
    write_run(tmp_path / "r", [1.0])
    info = read_state(tmp_path / "r").info
    plot = roofline_plot(verdict(), info)
    heights = numbers(plot.picture, "circle", "cy")
    (roof,) = re.findall(r'class="roof" d="M\S+ \S+L\S+ (\S+)L', plot.picture)
    assert len(heights) == 3
    assert min(heights) > float(roof)
    assert heights[0] == min(heights), "this kernel is the fastest of them"
    assert "faster units" not in plot.note
    plain = roofline_plot(verdict(), replace(info, flops=None))
    assert "3,000 GB/s" in plain.picture
    assert "64 GB/s" in plain.picture, "64 MB in 1 ms"


def test_a_kernel_far_over_the_roof_is_drawn_where_it_is_and_explained(tmp_path):
    write_run(tmp_path / "r", [1.0])
    info = read_state(tmp_path / "r").info
    rate = numbers(roofline_plot(verdict(), info).picture, "circle", "cy")
    low = replace(info, peaks=info.peaks | {"matmul_tflops": info.peaks["matmul_tflops"] / 1000})
    over = replace(verdict(), performance=replace(measured(1.0, is_final=True), roofline_frac=9.0))
    plot = roofline_plot(over, low)
    heights = numbers(plot.picture, "circle", "cy")
    (roof,) = re.findall(r'class="roof" d="M\S+ \S+L\S+ (\S+)L', plot.picture)
    assert max(heights) < float(roof), "all three are over it"
    assert len(set(heights)) == len(set(rate)), "none is moved to the edge"
    assert min(heights) > 12.0, "inside of the frame"
    assert "900.0 % of what the roof allows" in plot.note
    assert "faster units" in plot.note


def test_where_nothing_was_timed_there_is_no_roofline_and_no_time(tmp_path):
    write_run(tmp_path / "r", [1.0], device="cpu")
    state = read_state(tmp_path / "r")
    on_cpu = state.attempts[0].verdict
    for plot in (roofline_plot(on_cpu, state.info), timing_plot(on_cpu, state)):
        assert plot.picture is None
        assert "nothing is timed on a CPU" in plot.note
    unknown = roofline_plot(verdict(), replace(state.info, peaks={}))
    assert "ceilings were not measured" in unknown.note


def test_a_time_has_its_quartiles_and_what_else_the_run_found(tmp_path):
    write_run(tmp_path / "r", [1.0, 2.0, 3.0, Status.TIMEOUT])
    state = read_state(tmp_path / "r")
    plot = timing_plot(verdict(), state)
    assert "all 3 that passed" in plot.picture
    assert plot.picture.count('class="baseline"') == 2
    (box,) = re.findall(r'class="box" x="([\d.]+)" y="\d+\S* width="([\d.]+)"', plot.picture)
    (median,) = re.findall(r'class="median" x1="([\d.]+)"', plot.picture)
    assert float(box[0]) < float(median) < float(box[0]) + float(box[1])


def test_a_budget_goes_down_by_what_is_known(tmp_path):
    limits = Budget(wall_s=100.0, max_candidates=4, max_calls=10, max_tokens=9000, max_usd=1.0)
    with open_run(tmp_path / "r", budget=limits) as writer:
        for n in (1, 2):
            writer.add(n, 1.0)
    state = read_state(tmp_path / "r")
    left = {limit.name: limit.left_frac for limit in limits_of(state)}
    assert left == pytest.approx(
        {"candidates": 0.5, "calls": 0.8, "tokens": 0.8, "time": 0.9, "dollars": 0.98}
    )
    burnt = burn_down_plot(state)
    assert burnt.picture.count('class="line') == 4
    assert "calls: 2 of 10 spent" in [key.label for key in burnt.keys]
    swept = replace(state, attempts=(*state.attempts, replace(state.attempts[0], id=3,
                    action="sweep", verdict=None)))  # fmt: skip
    told = {limit.name: limit.told for limit in limits_of(swept)}
    assert told["calls"] == "2 of 10", "a sweep asks no model"
    assert told["candidates"] == "2 of 4", "one without a verdict is not counted"
    unknown = replace(state, spending=replace(state.spending, tokens=None))
    limit = next(limit for limit in limits_of(unknown) if limit.name == "tokens")
    assert (limit.left_frac, limit.picture, limit.told) == (None, "", "unknown of 9,000")
    free = replace(state, spec=replace(state.spec, budget=Budget()))
    assert burn_down_plot(free).note == "the run has no limits"


def test_a_call_whose_kernel_is_not_judged_yet_is_spent_in_the_curve_too(tmp_path):
    write_run(tmp_path / "r", [1.0, None], budget=Budget(max_calls=4))
    state = read_state(tmp_path / "r")
    (limit,) = [one for one in limits_of(state) if one.name == "calls"]
    assert (limit.told, _points(state, limit)[-1][1]) == ("2 of 4", limit.left_frac)


def test_a_difference_pairs_lines_and_marks_what_changed():
    old = "\n".join(["a", "b", "x = 1", *"cdefghijkl", "gone", "z"]) + "\n"
    new = "\n".join(["a", "b", "x = 2", *"cdefghijkl", "z", "more"]) + "\n"
    (one,) = compare_files({"k.py": old, "same": "s"}, {"k.py": new, "same": "s"})
    kinds = [row.kind for row in one.rows]
    assert kinds == ["same", "same", "changed", *["same"] * 3, "skipped", *["same"] * 3,
                     "removed", "same", "added"]  # fmt: skip
    assert (one.added, one.removed, one.rows[6].count) == (2, 2, 4)
    assert one.rows[2].new.text == "x = <mark>2</mark>"
    assert (one.rows[-1].new.number, one.rows[-1].old.number) == (15, None)
    assert compare_files({"a": "1"}, {"a": "1"}) == []


def test_a_difference_escapes_and_is_cut():
    (one,) = compare_files({"k": "<b>1"}, {"k": "<b>2"})
    assert one.rows[0].new.text == "&lt;b&gt;<mark>2</mark>"
    (long,) = compare_files({"k": "a\n" * 5000}, {"k": "b\n" * 2100})
    assert long.cut == 3100
    (wide,) = compare_files({"k": "<" * 5000}, {"k": ">" * 5000})
    assert "mark" not in wide.rows[0].new.text
