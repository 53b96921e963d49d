"""Estimates and slices of the attention benchmark, and which GPU takes which row."""

import json
import threading
from statistics import mean

import pytest
from attention_makers import failed_row, made_row
from benchmarks.attention_cases import CASES, Case
from benchmarks.attention_plan import (
    KERNEL_S,
    PLANNED_S,
    SCORES_S,
    SETUP_S,
    SLICE_S,
    budget_of,
    by_weight,
    estimate_s,
    measured_s,
    plan_text,
    seconds,
    slices,
    targeted,
)
from benchmarks.attention_queue import RowQueue, serve
from benchmarks.attention_targets import targets
from benchmarks.attention_trip import FAST_S, FINAL_S
from benchmarks.results_file import RESULTS

DENSE = ("full", "relative", "alibi", "softcap")
"""Variants without a mask."""
FULL, LONG = Case("full", 128), Case("full", 128, 16384)


def test_durations_are_read_and_others_refused():
    assert (seconds("45s"), seconds("1.5m")) == (45.0, 90.0)
    for text in ("45", "s", "0s", "-1s", "1h", "", "nans"):
        with pytest.raises(ValueError, match="duration"):
            seconds(text)


PACKED = Case("document", 128, packing=11)


def test_long_rows_search_longer_and_rows_without_a_target_shorter_unless_asked():
    assert [budget_of(c) for c in (FULL, LONG, PACKED)] == ["45s", "60s", "30s"]
    assert [budget_of(c, "10s") for c in (FULL, LONG, PACKED)] == ["10s"] * 3
    short = {case.key for case in CASES if budget_of(case) == "30s" and case.base is None}
    assert short == {case.key for case in CASES} - targeted()
    assert {"sigmoid-64", "full-128-s1024"} <= short
    assert not short & {"full-64", "neighbourhood_2d-64", "document-64-s16384"}


def test_a_row_that_times_another_ones_kernel_is_estimated_without_a_search():
    base = PACKED.base
    assert base == Case("document", 128)
    assert estimate_s(base, {}) - estimate_s(PACKED, {}) == pytest.approx(45.0 - KERNEL_S)
    assert estimate_s(PACKED, {}, "5s") < estimate_s(PACKED, {}) == estimate_s(PACKED, {}, "90s")
    searched = made_row(PACKED)
    assert measured_s([searched]) == {}
    assert measured_s([searched | {"kernel_of": base.key}]) == {PACKED.key: 70.0}


def test_the_model_of_set_up_does_not_stay_below_what_was_recorded():
    def rows(name):
        return json.loads((RESULTS / f"{name}_h200.json").read_text())["rows"]

    setups = [r["setup_s"] for r in rows("attention") if r["row"].split("-")[0] in DENSE]
    assert len(setups) == 8
    assert mean(setups) <= SETUP_S + SCORES_S
    loads = [r["setup_s"] for r in rows("verify_throughput") if "attention" in r["problem"]]
    assert len(loads) == 6
    assert pytest.approx(min(loads), abs=0.05) == SCORES_S  # goldens are a part of a load
    assert pytest.approx(FAST_S + FINAL_S) == KERNEL_S


def test_what_was_measured_is_taken_over_a_guess_for_the_same_budget_only():
    known = {FULL.key: 50.0}
    assert estimate_s(FULL, known) == 50.0
    assert estimate_s(FULL, {}) > 50.0
    assert estimate_s(FULL, known, "90s") == estimate_s(FULL, {}, "90s") > 90.0
    assert estimate_s(LONG, {}) > estimate_s(FULL, {}) > estimate_s(Case("full", 128, 1024), {})
    assert estimate_s(Case("softcap", 128), {}) > estimate_s(FULL, {})


def test_rows_that_failed_or_had_fewer_baselines_are_no_estimate():
    old = {k: v for k, v in made_row(LONG).items() if k != "family"}
    assert measured_s([made_row(FULL), failed_row(Case("causal", 128)), old]) == {FULL.key: 70.0}


def test_rows_of_another_budget_are_no_estimate():
    assert measured_s([made_row(FULL, budget="10s")]) == {}
    assert measured_s([made_row(FULL, budget="45s")]) == {FULL.key: 70.0}
    assert measured_s([made_row(LONG, budget="45s")]) == {}  # its own is longer


def test_slices_are_cut_for_the_budget_that_was_asked():
    known = {case.key: 50.0 for case in CASES}
    assert slices(CASES, 1, known, asked="5m") == slices(CASES, 1, {}, asked="5m")
    assert len(slices(CASES, 1, known, asked="5m")) > len(slices(CASES, 1, known))
    text = plan_text([FULL], 1, known, asked="5m")
    assert "0 measured before" in text
    assert f"full-128 ({estimate_s(FULL, {}, '5m'):.0f} s)" in text


@pytest.mark.parametrize("gpus", [1, 2, 4, 8])
def test_slices_hold_every_row_once_and_fit_eight_minutes(gpus):
    cut = slices(CASES, gpus, {})
    assert sorted(c.key for one in cut for c in one.cases) == sorted(c.key for c in CASES)
    assert all(0 < one.wall_s <= PLANNED_S < SLICE_S < 480 for one in cut)
    assert slices(CASES, gpus, {}) == cut


def test_a_row_that_is_longer_than_a_slice_stands_alone():
    cut = slices([FULL, LONG], 1, {FULL.key: 100.0, LONG.key: 500.0}, limit_s=400)
    assert [one.cases for one in cut] == [(FULL,), (LONG,)]
    assert slices([], 2, {}) == []


def test_rows_of_targets_come_first():
    order = [case.key for case in by_weight(CASES)]
    wanted = {key for target in targets([]) for key in target.rows}
    assert set(order[: len(wanted)]) == wanted
    assert order[0] == "full-128"
    for case in CASES:
        assert case.base is None or order.index(case.base.key) < order.index(case.key)
    assert order.index("document-128-p31") < order.index("full-128-s16384")
    assert order.index("full-64-s16384") < order.index("sigmoid-128")
    assert {key.split("-")[2] for key in order[-12:]} == {"s1024"}


def test_the_plan_names_slices_and_what_is_skipped():
    gone = Case("no_such_variant", 64)
    text = plan_text([FULL, LONG], 2, {FULL.key: 50.0}, [gone])
    assert "2 rows, estimated; 1 measured before" in text
    assert "full-128 (50 s)" in text
    assert "skipped: no_such_variant-64: no_such_variant.py is not there" in text
    assert "4 GPUs: 1 slices" in text


class Clock:
    """Seconds that pass only where a test says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_row_that_does_not_fit_is_not_begun_and_a_shorter_one_is():
    clock = Clock()
    queue = RowQueue([LONG, FULL], lambda c: 200.0 if c == LONG else 50.0, 100.0, clock)
    assert queue.take("0") == FULL
    assert queue.take("0") is None
    assert queue.left() == [LONG]
    clock.now = 60.0
    assert RowQueue([FULL], lambda c: 50.0, 100.0, clock).take("0") is None


def test_rows_that_are_compared_go_to_one_gpu_while_there_is_other_work():
    relative, alibi = Case("relative", 128), Case("alibi", 128, profile="needles")
    others = [Case("causal", 128), Case("softcap", 128)]
    queue = RowQueue([FULL, relative, *others, alibi], lambda c: 1.0, 100.0, Clock())
    assert queue.take("0") == FULL
    assert queue.take("1") == others[0]
    assert queue.take("0") == relative
    assert queue.take("1") == others[1]
    assert queue.take("1") == alibi  # rather than nothing


def test_all_gpus_serve_and_what_is_left_is_told():
    taken = []
    cases = [Case("causal", 64, S) for S in (1024, 4096, 16384)]
    queue = RowQueue(cases, lambda c: 1000.0 if c.S == 16384 else 1.0, 100.0, Clock())
    left = serve(queue, ["0", "1"], lambda case, gpu: taken.append((case, gpu)))
    assert left == [cases[2]]
    assert {case for case, _ in taken} == set(cases[:2])


def test_a_kernel_is_timed_on_other_values_once_it_is_found_and_other_rows_come_first():
    there, other = set(), Case("causal", 64)
    queue = RowQueue(
        [PACKED, PACKED.base, other], lambda c: 1.0, 100.0, Clock(), is_there=there.__contains__
    )
    assert queue.take("0") == PACKED.base
    assert queue.take("1") == other
    got = []
    waiting = threading.Thread(target=lambda: got.append(queue.take("1")))
    waiting.start()
    waiting.join(0.05)
    assert got == []
    there.add(PACKED.base)
    queue.done(PACKED.base)
    waiting.join(20)
    assert got == [PACKED]


def test_a_row_whose_base_is_not_coming_is_left():
    queue = RowQueue([PACKED], lambda c: 1.0, 100.0, Clock(), is_there=lambda case: False)
    assert queue.take("0") is None
    queue = RowQueue([PACKED, PACKED.base], lambda c: 1.0, 100.0, Clock(), is_there=lambda c: False)
    assert serve(queue, ["0", "1"], lambda case, gpu: None) == [PACKED]  # it failed


def test_a_row_whose_work_raises_holds_no_other_gpu_up():
    queue = RowQueue([PACKED.base, PACKED], lambda c: 1.0, 100.0, Clock(), is_there=lambda c: False)
    assert queue.take("0") == PACKED.base
    queue.done(PACKED.base)
    assert queue.take("1") is None
