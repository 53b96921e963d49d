"""Ratios and targets: what is met is said to be met, and a miss is said to be one."""

import pytest
from attention_makers import FULL, failed_row, made_row, slower
from benchmarks.attention_cases import FIGURE, Case
from benchmarks.attention_ratios import (
    FLEX,
    Over,
    is_win,
    mean_interval,
    mean_over,
    over_fastest,
    packings,
    speedup_of,
    to_own,
    with_prepare,
)
from benchmarks.attention_targets import (
    MISSED,
    MUST,
    NO_INTERVAL,
    NOT_MEASURED,
    STRETCH,
    WITHIN_NOISE,
    Target,
    counts,
    describe,
    load_reasons,
    ratio_text,
    target_lines,
    targets,
)

FULL_TARGET = "full, D 128, S 4096, over flex"
REASON = {
    "commit": "abc",
    "limit": "barriers",
    "evidence": "counters of full-128",
    "tried": "ping-pong",
}


def state_of(rows, name):
    return next(target for target in targets(rows) if target.name == name)


def both(ratio, tuned=None):
    return {"flex": ratio, "flex_max_autotune": ratio if tuned is None else tuned}


def test_a_ratio_is_over_the_fastest_and_needs_all_of_them():
    row = made_row(FULL, both(1.4, 1.2))
    assert over_fastest(row, FLEX) == Over(1.2, "flex_max_autotune", (1.19, 1.21))
    assert over_fastest(made_row(FULL, {"flex": 1.4}), FLEX) is None
    assert over_fastest(failed_row(FULL), FLEX) is None


@pytest.mark.parametrize(
    "changes",
    [{"status": "NO_FINAL"}, {"tier": "fast"}, {"status": "INCORRECT_NUMERICAL"},
     {"performance": None}],
)  # fmt: skip
def test_only_what_passed_the_final_tier_has_a_ratio(changes):
    assert speedup_of(made_row(FULL)) == 1.3
    assert speedup_of(made_row(FULL, **changes)) is None
    assert not is_win(made_row(FULL, **changes))


def test_a_win_is_beyond_the_interval():
    assert is_win(made_row(FULL, {"flex": 1.04}))
    assert not is_win(made_row(FULL, {"flex": 1.025}))
    doubted = slower(made_row(FULL, {"flex": 9.0}), 1.0, speedup={}, speedup_ci={})
    assert not is_win(doubted)
    assert speedup_of(doubted) is None


@pytest.mark.parametrize(
    ("ratio", "state"),
    [(1.23, MISSED), (1.25, WITHIN_NOISE), (1.27, MUST), (1.38, MUST), (1.40, STRETCH)],
)
def test_must_and_stretch_are_held_against_the_slower_ratio(ratio, state):
    assert state_of([made_row(FULL, both(2.0, ratio))], FULL_TARGET).state == state


def test_without_an_interval_nothing_is_met():
    row = made_row(FULL, both(9.0))
    assert state_of([row], FULL_TARGET).state == STRETCH
    doubted = slower(row, 1.0, speedup_ci={})
    found = state_of([doubted], FULL_TARGET)
    assert (found.state, found.interval) == (NO_INTERVAL, None)
    (told,) = [row for row in describe([found], {}) if row["name"] == FULL_TARGET]
    assert ratio_text(told) == "9.000"


def test_the_interval_of_several_rows_is_the_mean_of_their_ends():
    cases = [Case(v, 64) for v in FIGURE]
    rows = {case.key: made_row(case, both(1.25)) for case in cases}
    assert mean_interval(rows, cases, FLEX) == pytest.approx((1.24, 1.26))
    one = rows[cases[0].key]
    rows[cases[0].key] = slower(one, 1.0, speedup_ci={})
    assert mean_interval(rows, cases, FLEX) is None
    assert mean_interval({}, cases, FLEX) is None


def test_a_target_is_shown_with_its_interval():
    (told,) = describe([state_of([made_row(FULL, both(1.25))], FULL_TARGET)], {})
    assert ratio_text(told) == "1.250 [1.240, 1.260]"
    assert "1.250 [1.240, 1.260] of 1.25 / 1.38: within noise" in target_lines([told])[0]
    (told,) = describe([state_of([], FULL_TARGET)], {})
    assert ratio_text(told) == ""


def test_what_was_not_measured_is_never_met():
    assert {target.state for target in targets([])} == {NOT_MEASURED}
    assert state_of([failed_row(FULL)], FULL_TARGET).state == NOT_MEASURED
    assert state_of([made_row(FULL, {"flex": 9.0})], FULL_TARGET).state == NOT_MEASURED
    model = made_row(FULL, both(9.0), generator="model")
    assert state_of([model], FULL_TARGET).state == NOT_MEASURED


def test_documents_count_by_the_geometric_mean_of_all_packings():
    rows = [made_row(case, both(r)) for case, r in zip(packings(128), (1, 2, 1, 2, 1), strict=True)]
    name = "document, D 128, S 4096, over flex, 5 packings"
    found = state_of(rows, name)
    assert found.ratio == pytest.approx(2 ** (2 / 5))
    assert found.state == MUST
    assert state_of(rows[:-1], name).state == NOT_MEASURED
    assert state_of([*rows[:-1], failed_row(packings(128)[-1])], name).state == NOT_MEASURED


def test_the_mean_of_the_six_at_d_64():
    rows = [made_row(Case(v, 64), both(1.22)) for v in FIGURE]
    name = "the six, D 64, S 4096, over flex"
    assert state_of(rows, name).state == MUST
    rows[0] = made_row(Case(FIGURE[0], 64), both(0.5))
    assert state_of(rows, name).state == MISSED


def test_softcap_is_held_against_flex_with_the_same_tanh_too():
    case = Case("softcap", 128)
    ratios = both(2.2) | {"flex_approx": 1.3, "flex_approx_max_autotune": 1.1}
    rows = [made_row(case, ratios)]
    assert state_of(rows, "softcap, D 128, S 4096, over flex").state == MUST
    name = "softcap, D 128, S 4096, over flex with the approximate tanh"
    assert state_of(rows, name).state == MISSED
    rows = [made_row(case, ratios | {"flex_approx_max_autotune": 1.22})]
    assert state_of(rows, name).state == MUST


@pytest.mark.parametrize(
    ("cudnn", "state"), [(0.95, MISSED), (0.97, WITHIN_NOISE), (0.99, MUST), (1.02, STRETCH)]
)
def test_full_is_held_against_cudnn(cudnn, state):
    rows = [made_row(FULL, both(1.3) | {"cudnn": cudnn})]
    assert state_of(rows, "full, D 128, S 4096, over cuDNN").state == state


@pytest.mark.parametrize(
    ("latency_ms", "state"), [(1.04, MISSED), (1.03, WITHIN_NOISE), (1.02, MUST)]
)
def test_relative_is_held_against_our_own_full(latency_ms, state):
    relative = slower(made_row(Case("relative", 128)), latency_ms)
    rows = [made_row(FULL), relative]
    assert state_of(rows, "relative, D 128, S 4096, dense, beside our full").state == state
    needles = slower(made_row(Case("relative", 128, profile="needles")), latency_ms)
    name = "relative, D 128, S 4096, needles, beside our full"
    assert state_of(rows, name).state == NOT_MEASURED
    assert state_of([*rows, needles], name).state == state


def test_two_gpus_are_compared_by_their_shares_of_what_each_can_do():
    full = made_row(FULL)
    other = slower(made_row(Case("alibi", 128), gpu_uuid="GPU-2"), 2.0, roofline_frac=0.63)
    beside = to_own(full, other)
    assert beside.ratio == pytest.approx(0.9)
    assert "each GPU" in beside.how
    assert to_own(full, other | {"gpu_uuid": "GPU-1"}).ratio == 0.5
    assert to_own(full, slower(other, 2.0, roofline_frac=None)) is None
    assert to_own(full, failed_row(Case("alibi", 128))) is None


def test_a_timing_that_was_not_believed_is_not_compared_with_our_own():
    full, other = made_row(FULL), made_row(Case("alibi", 128))
    assert to_own(full, other).ratio == 1.0
    for doubted in (full, other):
        rows = [slower(r, 1.0, speedup={}) if r is doubted else r for r in (full, other)]
        assert to_own(*rows) is None


def test_two_rows_of_ours_differ_by_no_less_than_their_calls_do():
    full, other = made_row(FULL), slower(made_row(Case("alibi", 128)), 2.0, spread_ms=0.4)
    low, high = to_own(full, other).interval
    assert low == pytest.approx(0.999 / 2.2)
    assert high == pytest.approx(1.001 / 1.8)
    assert to_own(full, slower(other, 2.0, spread_ms=None)).interval is None


def test_work_ahead_is_spread_over_calls():
    spread = {"flex": {"1": 4.0, "32": 1.4}}
    row = slower(made_row(FULL), 1.0, speedup_with_prepare=spread)
    assert (with_prepare(row, "flex", 1), with_prepare(row, "flex", 32)) == (4.0, 1.4)
    assert with_prepare(row, "flex", 7) is None
    assert with_prepare(failed_row(FULL), "flex", 1) is None


def test_a_mean_over_some_of_the_cases_is_none():
    rows = {FULL.key: made_row(FULL, both(2.0))}
    assert mean_over(rows, [FULL], FLEX) == pytest.approx(2.0)
    assert mean_over(rows, [FULL, Case("causal", 128)], FLEX) is None
    assert mean_over(rows, [], FLEX) is None


def test_a_miss_has_its_reason_or_says_that_there_is_none():
    missed = targets([made_row(FULL, both(1.0))])
    with_reason = describe(missed, {FULL_TARGET: REASON})
    without = describe(missed, {})
    told = {row["name"]: row for row in with_reason}
    assert told[FULL_TARGET]["state"] == MISSED
    assert told[FULL_TARGET]["reason"] == REASON
    assert "reason" not in told["causal, D 128, S 4096, over flex"]
    assert any("missed barriers" in line for line in target_lines(with_reason))
    assert any("missed no reason is given" in line for line in target_lines(without))
    assert counts(without)[MISSED] == 1
    met = describe(targets([made_row(FULL, both(1.5))]), {FULL_TARGET: REASON})
    assert all("reason" not in row for row in met)
    assert counts(met)[STRETCH] == 1


def test_a_target_without_a_stretch_is_met_or_not():
    target = Target(name="t", must=2.0, stretch=None, ratio=9.0, interval=(8.0, 10.0), rows=())
    assert target.state == MUST


def test_reasons_are_about_targets_and_say_what_they_must(tmp_path):
    path = tmp_path / "reasons.toml"
    assert load_reasons("abc", path) == {}
    whole = f'["{FULL_TARGET}"]\ncommit = "abc"\nlimit = "a"\nevidence = "b"\ntried = "c"\n'
    path.write_text(whole)
    assert load_reasons("abc", path)[FULL_TARGET]["limit"] == "a"
    assert load_reasons("abd", path) == {}
    path.write_text(whole.replace(FULL_TARGET, "full"))
    with pytest.raises(ValueError, match="no target is called 'full'"):
        load_reasons("abc", path)
    for line in ('tried = "c"\n', 'commit = "abc"\n'):
        path.write_text(whole.replace(line, ""))
        with pytest.raises(ValueError, match="expected commit, evidence, limit, tried"):
            load_reasons("abc", path)


def test_the_reasons_of_the_project_can_be_read():
    assert isinstance(load_reasons("abc"), dict)
