"""docs/attention.md says what the results files hold."""

import json

import pytest
from attention_makers import FULL, failed_row, made_row, results_of, slower
from benchmarks.attention_cases import Case
from benchmarks.attention_page import (
    NO_MODEL_RESULTS,
    NO_RESULTS,
    model_line,
    row_line,
    softcap_note,
    tables,
)
from benchmarks.attention_table import size_ratios

from benchmarks import attention_figure, readme
from hotloop.core.statistics import geometric_mean


def test_the_page_and_the_picture_are_what_the_results_files_give():
    page = readme.PAGE.read_text(encoding="utf-8")
    assert readme.with_tables(page) == page
    results = readme.load_results()
    if results is not None:
        assert readme.PICTURE.read_text(encoding="utf-8") == attention_figure.picture(results)


def test_without_results_nothing_is_claimed():
    text = tables(None, None)
    assert NO_RESULTS in text
    assert NO_MODEL_RESULTS in text
    assert not any(c.isdigit() for c in text)


def test_a_row_shows_its_family_its_ratios_and_other_baselines():
    ratios = {"flex": 1.3, "flex_max_autotune": 1.2, "cudnn": 0.97, "sdpa_flash": 1.5}
    line = row_line(made_row(FULL, ratios, family="hopper"))
    assert "hopper replay" in line
    assert "1.30 [1.29, 1.31] | 1.20 | cudnn 0.97, sdpa_flash 1.50 |" in line


def test_a_slow_eager_is_shown_by_its_time_at_set_up():
    at_setup = {"setup_baselines_ms": {"eager": 42.0}}
    assert "| eager 42 (at set-up) |" in row_line(made_row(FULL, **at_setup))
    beside = made_row(FULL, {"flex": 1.3, "flex_max_autotune": 1.2, "eager": 19.5}, **at_setup)
    assert "| eager 19.50 |" in row_line(beside)


def test_a_row_that_failed_keeps_its_place():
    assert "| ERROR |" in row_line(failed_row(FULL))
    assert "1.000" not in row_line(made_row(FULL, status="NO_FINAL"))


def test_a_miss_and_what_was_skipped_stand_on_the_page():
    rows = [made_row(FULL, {"flex": 1.1, "flex_max_autotune": 1.0})]
    skipped = {"sigmoid-64": "sigmoid.py is not there"}
    text = tables(results_of(rows, summary={"skipped": skipped}), None)
    assert (
        "| full, D 128, S 4096, over flex (flex_max_autotune) | 1.25 / 1.38 | "
        "1.000 [0.990, 1.010] | missed |" in text
    )
    assert "no reason is given yet: full, D 128, S 4096, over flex" in text
    assert "`sigmoid-64` was not run: sigmoid.py is not there" in text
    met = tables(results_of([made_row(FULL, {"flex": 2, "flex_max_autotune": 2})]), None)
    assert "| 2.000 [1.990, 2.010] | met with the stretch |" in met
    assert "no reason" not in met
    doubtful = tables(results_of([made_row(FULL, {"flex": 2, "flex_max_autotune": 1.25})]), None)
    assert "| 1.250 [1.240, 1.260] | within noise |" in doubtful


def test_the_page_says_how_far_apart_compared_rows_may_be():
    text = tables(results_of([made_row(FULL), made_row(Case("relative", 128))]), None)
    assert "perhaps days apart" in text
    assert "(times on one GPU, two processes) | 0.97 | 1.000 [0.998, 1.002] | met |" in text


def test_the_page_says_how_many_sizes_are_behind_the_picture():
    text = tables(results_of([made_row(FULL)]), None)
    assert "full 1 of 6 sizes, causal 0 of 6 sizes" in text
    assert "Failed:" not in text
    with_failure = results_of([made_row(Case("full", 64)), failed_row(FULL)])
    assert "Failed: full-128." in tables(with_failure, None)


def test_a_reason_stands_beside_the_miss_it_was_written_for_only(tmp_path):
    path = tmp_path / "reasons.toml"
    path.write_text(
        '["full, D 128, S 4096, over flex"]\ncommit = "abc"\nlimit = "barriers."\n'
        'evidence = "counters."\ntried = "ping-pong."\n'
    )
    missed = [made_row(FULL, {"flex": 1.1, "flex_max_autotune": 1.0})]
    assert "barriers. Evidence: counters." in tables(results_of(missed, commit="abc"), None, path)
    later = tables(results_of(missed, commit="abd"), None, path)
    assert "barriers" not in later
    assert "no reason is given yet" in later


def test_work_ahead_stands_beside_the_block_masks():
    tuned = "flex_max_autotune"
    row = slower(made_row(Case("causal", 128)), 1.0, baseline_prepare_ms={"flex": 2.5, tuned: 2.5},
                 speedup_with_prepare={tuned: {"1": 4.0, "32": 1.4}})  # fmt: skip
    text = tables(results_of([row, made_row(FULL)]), None)
    assert "| causal-128 | 0.010 | 2.500 | flex_max_autotune | 1.20 | 4.00 | 1.40 |" in text
    assert "| full-128 | 0.010" not in text


def test_graphs_of_baselines_stand_beside_their_device_times_and_ours_are_said_to_be_missing():
    checks = {"graph_replayed_ms": {"flex": 1.25, "cudnn": None}}
    row = slower(made_row(FULL), 1.0, timing_checks=checks)
    text = tables(results_of([row]), None)
    assert "| full-128 | flex 1.300 / 1.250 |" in text
    assert "Our own kernels were not timed as graphs in this way" in text
    assert "1.010" not in text  # a batch on warm caches
    assert "measured before graphs were" in tables(results_of([made_row(FULL)]), None)


def test_a_missing_baseline_is_told_with_its_reason():
    why = {"flex_flash": "flash-attn-4 is not installed"}
    rows = [made_row(FULL, missing_baselines=why), made_row(Case("full", 64))]
    assert "- `flex_flash` (full-128): flash-attn-4 is not installed" in tables(
        results_of(rows), None
    )
    assert "`flex_flash` (all rows)" in tables(results_of(rows[:1]), None)
    assert "Baselines that are missing" not in tables(results_of(rows[1:]), None)


def test_softcap_says_what_it_is_with_the_same_tanh():
    ratios = {"flex_approx": 1.4, "flex_approx_max_autotune": 1.25}
    assert "1.25 (softcap-128)" in softcap_note([made_row(Case("softcap", 128), ratios)])
    assert softcap_note([made_row(FULL)]) == ""


MODEL_ROW = made_row(FULL) | {
    "generator": "model", "title": "full", "language": "gluon", "arm": "started",
    "model": "somebody", "calls": 8, "loop_over_template": 1.07,
}  # fmt: skip
GROUP = {"rows": 6, "passed": 4, "geomean_over_fastest_flex": 1.31, "compared": 5,
         "loop_over_template": 1.05, "loop_measured": 3}  # fmt: skip


def test_rows_of_a_model_stand_in_a_table_of_their_own():
    assert (
        "| full | gluon | started | somebody | 8 | PASSED | 1.30 [1.29, 1.31] | 1.20 | 1.07 |"
        in (model_line(MODEL_ROW))
    )
    nothing = {"loop_over_template": None, "loop_measured": 0}
    blank = GROUP | nothing | {"geomean_over_fastest_flex": None, "compared": 0, "passed": 0}
    gluon = {"blank": blank, "started": GROUP, "template_adds": 1.2, "pairs": 4}
    text = tables(None, results_of([MODEL_ROW], summary={"languages": {"gluon": gluon}}))
    told = "started: 4 of 6 passed, 1.31 over the faster flex, failures as 1.0, 1 not measured"
    assert told in text
    assert "blank: 0 of 6 passed, no ratio, 6 not measured" in text
    assert "8 to 8 rounds each" in text
    assert "kernels 1.05 times as fast (3 of 6 runs measured)" in text
    assert "kernels 1.20 times as fast, as the mean over the 4 problems" in text
    whole = GROUP | nothing | {"passed": 6, "compared": 6}
    gluon |= {"started": whole, "template_adds": None}
    text = tables(None, results_of([MODEL_ROW], summary={"languages": {"gluon": gluon}}))
    assert "started: 6 of 6 passed, 1.31 over the faster flex; what the loop adds" in text
    assert "template's kernels is not measured" in text


def test_a_gain_that_was_not_measured_is_said_to_be_so():
    unknown = MODEL_ROW | {"loop_over_template": None}
    assert model_line(unknown).endswith("| not measured |")
    assert model_line(unknown | {"arm": "blank"}).endswith("| 1.20 |  |")
    sure = MODEL_ROW | {"loop_over_template_ci": [1.051, 1.092]}
    assert model_line(sure).endswith("| 1.07 [1.05, 1.09] |")


def test_the_readme_shows_each_variant_once_a_head_size():
    cases = [FULL, Case("full", 128, 16384), Case("document", 128, packing=11),
             Case("alibi", 128, profile="needles"), Case("document", 128)]  # fmt: skip
    shown = readme.shown_rows([made_row(case) for case in cases])
    assert [row["row"] for row in shown] == ["full-128", "document-128"]


def test_a_mapped_row_that_failed_is_no_disclosure():
    mapped = {"row_order": "sorted"}
    failed = failed_row(Case("document", 128)) | {"schedule": mapped}
    assert readme.disclosures([failed]) == []
    passed = made_row(Case("document", 128), schedule=mapped)
    assert any("at most 0.01 ms" in line for line in readme.disclosures([failed, passed]))


def test_the_published_means_are_those_of_its_rows():
    results = json.loads(readme.RESULTS.read_text())
    ratios = size_ratios(results["rows"], ("flex",))
    claimed = results["summary"]["geomean_speedup_flex"]
    assert geometric_mean(ratios) == pytest.approx(claimed, abs=1e-4)
