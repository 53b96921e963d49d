"""The README claims what the results files hold, and nothing else."""

import copy
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("readme", ROOT / "benchmarks" / "readme.py")
readme = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(readme)

ROW = {
    "problem": "attention/relative",
    "workload": {"B": 4, "H": 16, "S": 4096, "D": 128, "dtype": "bfloat16"},
    "generator": "builtin",
    "status": "PASSED",
    "tier": "final",
    "performance": {
        "latency_ms": 1.0,
        "baselines": {"flex": 1.25, "eager": 9.0, "flex_max_autotune": 1.2},
        "speedup": {"flex": 1.25, "eager": 9.0, "flex_max_autotune": 1.2},
        "speedup_ci": {"flex": [1.2, 1.3]},
    },
}
RESULTS = {
    "command": "make bench-attention",
    "date": "2026-01-01",
    "environment": {"gpu": "NVIDIA H200", "torch": "2.13.0", "triton": "3.9.0"},
    "rows": [ROW],
}


def rows_like(**changes):
    row = copy.deepcopy(ROW)
    row["performance"].update(changes)
    return [row]


def test_the_readme_is_what_the_results_files_give():
    text = readme.README.read_text(encoding="utf-8")
    results = readme.load_results()
    assert readme.with_sections(text) == text
    if results is None:
        assert not readme.PICTURE.exists()
    else:
        assert readme.PICTURE.read_text(encoding="utf-8") == readme.picture(results)


def test_without_results_nothing_is_claimed():
    assert readme.section(None) == readme.NO_RESULTS
    assert not any(c.isdigit() for c in readme.NO_RESULTS)


def test_a_row_has_its_ratio_with_interval_and_the_fastest_other_baseline():
    line = readme.table_row(ROW)
    assert "1.25 [1.20, 1.30]" in line
    assert "| flex_max_autotune | 1.20 |" in line


def test_a_failed_problem_stays_in_the_table():
    line = readme.table_row({**ROW, "status": "INCORRECT_NUMERICAL", "performance": None})
    assert "INCORRECT_NUMERICAL" in line


@pytest.mark.parametrize(
    ("interval", "expected"),
    [([1.03, 1.3], "1 of 1"), ([1.01, 1.3], "0 of 1"), ([0.8, 0.9], "0 of 1")],
)
def test_a_win_is_counted_by_the_lower_end_of_its_interval(interval, expected):
    assert readme.count_wins(rows_like(speedup_ci={"flex": interval})).startswith(expected)


def test_the_section_names_where_its_figures_come_from():
    text = readme.section(RESULTS)
    for part in (
        "NVIDIA H200",
        "2.13.0",
        "make bench-attention",
        "no model",
        "attention_h200.json",
    ):
        assert part in text


def test_a_readme_without_markers_is_refused():
    with pytest.raises(ValueError, match="once"):
        readme.with_section("# no markers", "x")
