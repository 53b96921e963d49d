"""Which rows the attention benchmark has, and how they are named and chosen."""

import json

import pytest
from benchmarks.attention_cases import (
    CASES,
    FIGURE,
    PACKINGS,
    VARIANTS,
    Case,
    select,
    without_files,
)
from benchmarks.results_file import RESULTS

from hotloop.problems.settings import parse_settings


def test_the_rows_are_those_that_targets_are_about():
    keys = [case.key for case in CASES]
    assert len(set(keys)) == len(keys)
    assert len(VARIANTS) == 12
    for variant in VARIANTS:
        assert {f"{variant}-64", f"{variant}-128"} <= set(keys)
    for variant in FIGURE:
        for S in (1024, 16384):
            assert {f"{variant}-64-s{S}", f"{variant}-128-s{S}"} <= set(keys)
    packed = [c for c in CASES if c.packing is not None]
    assert {(c.D, c.S) for c in packed} == {(128, 4096), (128, 16384)}
    assert len(packed) == 2 * (len(PACKINGS) - 1) == 8
    assert {c.key for c in CASES if c.profile} == {
        f"{v}-128{s}-needles" for v in ("relative", "alibi") for s in ("", "-s16384")
    }


def test_the_batch_is_smaller_at_the_longest_length_only():
    assert {(c.S, c.B) for c in CASES} == {(1024, 4), (4096, 4), (16384, 2)}


@pytest.mark.parametrize(
    ("case", "settings"),
    [
        (Case("full", 64), {"D": 64}),
        (Case("full", 64, 1024), {"D": 64, "S": 1024}),
        (Case("full", 128, 16384), {"D": 128, "S": 16384, "B": 2}),
        (Case("document", 128, packing=11), {"D": 128, "buffer_seed": 11}),
        (Case("alibi", 128, profile="needles"), {"D": 128, "timed_profile": "needles"}),
    ],
)
def test_a_case_is_what_set_is_given(case, settings):
    assert parse_settings(case.settings) == settings


def test_names_pick_variants_rows_and_lengths():
    def picked(names):
        return [case.key for case in select(names)]

    assert picked("") == [case.key for case in CASES]
    assert picked("causal-64, full-128") == ["causal-64", "full-128"]
    assert len(picked("causal")) == 6
    assert {key.split("-")[2] for key in picked("s1024")} == {"s1024"}
    assert len(picked("s1024")) == 12
    with pytest.raises(ValueError, match="nonsense"):
        select("full,nonsense")


def test_a_row_without_its_file_is_named_and_one_with_it_is_not():
    gone = Case("no_such_variant", 64)
    assert without_files([Case("full", 64), gone]) == [gone]


def test_the_published_rows_are_rows_of_today():
    rows = json.loads((RESULTS / "attention_h200.json").read_text())["rows"]
    assert {row["row"] for row in rows} <= {case.key for case in CASES}
