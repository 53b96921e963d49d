"""The figure: three bars a variant, drawn from a results file, on light and dark pages."""

import json
import xml.etree.ElementTree as tree

import pytest
from attention_makers import ENVIRONMENT, failed_row, made_row, results_of, slower
from benchmarks.attention_cases import CASES, FIGURE, Case
from benchmarks.attention_figure import PUBLISHED, SERIES, bars, picture
from benchmarks.attention_ratios import FLEX, packings

SVG = "{http://www.w3.org/2000/svg}"


def all_sizes(variant):
    """Return all rows of a variant that its bar is about."""
    return [c for c in CASES if c.variant == variant and c.profile is None]


def rows_of_six(ratio=1.3, tuned=1.2):
    ratios = {"flex": ratio, "flex_max_autotune": tuned}
    return [made_row(case, ratios) for variant in FIGURE for case in all_sizes(variant)]


def bar_of(rows, variant):
    return next(bar for bar in bars(rows) if bar.variant == variant)


def rects(svg, name):
    return [e for e in tree.fromstring(svg).iter(f"{SVG}rect") if e.get("class") == name]


def test_a_bar_is_the_geometric_mean_over_all_sizes():
    rows = [made_row(case, {"flex": 1.0, "flex_max_autotune": 1.0}) for case in all_sizes("full")]
    rows[0] = made_row(all_sizes("full")[0], {"flex": 4.0, "flex_max_autotune": 2.0})
    bar = bar_of(rows, "full")
    assert bar.published == 1.6
    assert (bar.over_flex, bar.over_fastest) == (round(4 ** (1 / 6), 4), round(2 ** (1 / 6), 4))
    assert (len(bar.sizes), bar.failed) == (6, ())


def test_a_failed_size_makes_a_bar_worse_never_better():
    whole = rows_of_six(2.0, 2.0)
    kept = [r for r in whole if r["row"] != "full-128"]
    for failure in (
        failed_row(Case("full", 128)),
        made_row(Case("full", 128), status="INCORRECT_NUMERICAL"),
        made_row(Case("full", 128), status="NO_FINAL"),
    ):
        bar = bar_of([*kept, failure], "full")
        assert bar.over_flex == round(2 ** (5 / 6), 4) < bar_of(whole, "full").over_flex
        assert bar.failed == ("full-128",)
        assert "1 rows failed: 1.0x" in picture(results_of([*kept, failure]))
    assert "rows failed" not in picture(results_of(whole))


def test_without_one_of_its_sizes_a_bar_is_pale_and_says_so():
    rows = [r for r in rows_of_six() if r["row"] != "full-128-s16384"]
    bar = bar_of(rows, "full")
    assert (bar.over_flex, bar.is_whole, bar.told) == (1.3, False, "5 of 6 sizes")
    svg = picture(results_of(rows))
    pale = [e.get("fill-opacity") is not None for e in rects(svg, "over_flex")]
    assert pale == [True] + [False] * 5
    assert all(e.get("fill-opacity") is None for e in rects(svg, "published"))
    assert "5 of 6 sizes" in svg
    assert bar_of(rows_of_six(), "full").is_whole


def test_a_timing_that_was_not_believed_is_no_failure_and_no_bar():
    rows = [r for r in rows_of_six() if r["row"] != "full-128"]
    doubted = slower(made_row(Case("full", 128)), 1.0, speedup={}, speedup_ci={})
    bar = bar_of([*rows, doubted], "full")
    assert (bar.over_flex, bar.failed, bar.told) == (1.3, (), "5 of 6 sizes")


def test_packings_of_one_size_count_as_one_and_none_may_be_missing():
    fast = {case.key for case in packings(128)}
    rows = [
        made_row(case, dict.fromkeys(FLEX, 4.0 if case.key in fast else 1.0))
        for case in all_sizes("document")
    ]
    bar = bar_of(rows, "document")
    assert bar.over_flex == round(4 ** (1 / 6), 4)
    assert len(bar.sizes) == 6
    without = [row for row in rows if row["row"] != "document-128-p31"]
    assert bar_of(without, "document").told == "5 of 6 sizes"


def test_needles_and_models_are_no_part_of_it():
    rows = [made_row(Case("relative", 128, profile="needles"))]
    rows += [made_row(Case("full", 128), generator="model")]
    assert all(bar.over_flex is None for bar in bars(rows))


def test_the_picture_has_the_published_ratio_beside_ours(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(results_of(rows_of_six())))
    svg = picture(json.loads(path.read_text()))
    heights = {}
    for name, _, colour in SERIES:
        drawn = rects(svg, name)
        assert len(drawn) == len(FIGURE)
        assert {e.get("fill") for e in drawn} == {colour}
        heights[name] = [float(e.get("height")) for e in drawn]
    scale = heights["published"][0] / PUBLISHED["full"]
    assert heights["over_flex"][0] == pytest.approx(1.3 * scale, abs=0.2)
    assert heights["over_fastest"][5] == pytest.approx(1.2 * scale, abs=0.2)
    assert heights["published"][5] == pytest.approx(2.1 * scale, abs=0.2)
    assert "NVIDIA H200" in svg


def test_it_can_be_read_on_a_dark_page():
    svg = picture(results_of(rows_of_six()))
    assert "prefers-color-scheme:dark" in svg
    assert "#fff" not in svg.replace("#ffffff", "#fff").split("</style>")[1]


def test_a_variant_that_was_not_measured_has_no_bar_and_the_published_one_stays():
    svg = picture(results_of([row for row in rows_of_six() if "softcap" not in row["row"]]))
    assert len(rects(svg, "published")) == 6
    assert len(rects(svg, "over_flex")) == 5
    assert svg.count("6 of 6 sizes") == 5
    assert svg.count("0 of 6 sizes") == 1


def test_the_picture_names_its_sizes():
    rows = [row for row in rows_of_six() if row["row"] in ("full-64", "full-128")]
    svg = picture(results_of(rows))
    assert len(rects(svg, "over_flex")) == 1
    assert "2 of 6 sizes" in svg
    assert "D 64 and 128 at S 1024, 4096, 16384" in svg


def test_names_are_escaped():
    svg = picture(results_of(rows_of_six(), environment=ENVIRONMENT | {"gpu": "<&>"}))
    tree.fromstring(svg)
    assert "&lt;&amp;&gt;" in svg
