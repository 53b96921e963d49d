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
from benchmarks.attention_ratios import speedup_of

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
        "| full, D 128, S 4096, over flex (flex_max_autotune) | 1.25 / 1.38 | 1.000 | missed |"
        in text
    )
    assert "no reason is given yet: full, D 128, S 4096, over flex" in text
    assert "`sigmoid-64` was not run: sigmoid.py is not there" in text
    met = tables(results_of([made_row(FULL, {"flex": 2, "flex_max_autotune": 2})]), None)
    assert "| 2.000 | met with the stretch |" in met
    assert "no reason" not in met


def test_work_ahead_stands_beside_the_block_masks():
    tuned = "flex_max_autotune"
    row = slower(made_row(Case("causal", 128)), 1.0, baseline_prepare_ms={"flex": 2.5, tuned: 2.5},
                 speedup_with_prepare={tuned: {"1": 4.0, "32": 1.4}})  # fmt: skip
    text = tables(results_of([row, made_row(FULL)]), None)
    assert "| causal-128 | 0.010 | 2.500 | flex_max_autotune | 1.20 | 4.00 | 1.40 |" in text
    assert "| full-128 | 0.010" not in text


def test_graphs_stand_beside_device_times():
    checks = {"graph_replayed_ms": {"flex": 1.25, "cudnn": None}}
    row = slower(made_row(FULL), 1.0, timing_checks=checks)
    text = tables(results_of([row]), None)
    assert "| full-128 | 1.000 / 1.010 | flex 1.300 / 1.250 |" in text
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
GROUP = {"rows": 6, "passed": 5, "geomean_over_fastest_flex": 1.31, "loop_over_template": 1.05}


def test_rows_of_a_model_stand_in_a_table_of_their_own():
    assert (
        "| full | gluon | started | somebody | 8 | PASSED | 1.30 [1.29, 1.31] | 1.20 | 1.07 |"
        in (model_line(MODEL_ROW))
    )
    blank = GROUP | {"loop_over_template": None, "geomean_over_fastest_flex": None}
    summary = {"languages": {"gluon": {"blank": blank, "started": GROUP, "template_adds": 1.2}}}
    text = tables(None, results_of([MODEL_ROW], summary=summary))
    assert "started: 5 of 6 passed, 1.31 over the faster flex" in text
    assert "blank: 5 of 6 passed, no ratio" in text
    assert "8 to 8 rounds each" in text
    assert "kernels 1.05 times as fast" in text
    assert "kernels 1.20 times as fast" in text


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
    ratios = [ratio for row in results["rows"] if (ratio := speedup_of(row)) is not None]
    claimed = results["summary"]["geomean_speedup_flex"]
    assert geometric_mean(ratios) == pytest.approx(claimed, abs=1e-4)
