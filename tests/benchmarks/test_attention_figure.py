"""The figure: three bars a variant, drawn from a results file, on light and dark pages."""

import json
import xml.etree.ElementTree as tree

import pytest
from attention_makers import ENVIRONMENT, failed_row, made_row, results_of
from benchmarks.attention_cases import FIGURE, Case
from benchmarks.attention_figure import PUBLISHED, SERIES, bars, picture
from benchmarks.attention_ratios import packings

SVG = "{http://www.w3.org/2000/svg}"


def rows_of_six(ratio=1.3, tuned=1.2):
    ratios = {"flex": ratio, "flex_max_autotune": tuned}
    return [made_row(Case(variant, D), ratios) for variant in FIGURE for D in (64, 128)]


def bar_of(rows, variant):
    return next(bar for bar in bars(rows) if bar.variant == variant)


def rects(svg, name):
    return [e for e in tree.fromstring(svg).iter(f"{SVG}rect") if e.get("class") == name]


def test_a_bar_is_the_geometric_mean_over_the_sizes():
    rows = [
        made_row(Case("full", 64), {"flex": 1.0, "flex_max_autotune": 1.0}),
        made_row(Case("full", 128, 16384), {"flex": 4.0, "flex_max_autotune": 2.25}),
        failed_row(Case("full", 128)),
    ]
    bar = bar_of(rows, "full")
    assert (bar.published, bar.over_flex, bar.over_fastest) == (1.6, 2.0, 1.5)
    assert bar.sizes == ("full-64", "full-128-s16384")


def test_packings_of_one_size_count_as_one_row():
    four = [made_row(case, {"flex": 4.0, "flex_max_autotune": 4.0}) for case in packings(128)]
    one = made_row(Case("document", 64), {"flex": 1.0, "flex_max_autotune": 1.0})
    assert bar_of([*four, one], "document").over_flex == 2.0


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


def test_names_are_escaped():
    svg = picture(results_of(rows_of_six(), environment=ENVIRONMENT | {"gpu": "<&>"}))
    tree.fromstring(svg)
    assert "&lt;&amp;&gt;" in svg
