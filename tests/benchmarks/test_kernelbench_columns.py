"""Two precision columns of one model: each says of itself who wrote its kernels, and how."""

from pathlib import Path

import pytest
from benchmarks.kernelbench_page import tables
from benchmarks.readme_kernelbench import generator_text, kernelbench_section
from kernelbench_makers import MODEL, made_results, made_row

SOURCE = Path("benchmarks/results/kernelbench_h200.json")
STRICT = "model/strict/cuda"


@pytest.fixture
def results():
    """A suite of a search, and its kernels verified again under `strict`."""
    asked = made_row("1/1", 4.0)
    again = made_row("1/1", 2.0, column=STRICT, calls=0)
    found = made_results({MODEL: [asked], STRICT: [again]})
    shipped, strict = found["summary"]["suites"]
    strict["options"] |= {
        "precision": "strict", "start": "1 kernels of model, 0123abcd", "language": "cuda, triton"
    }  # fmt: skip
    strict["limits"] = {"max_calls": None, "max_candidates": 1}
    return found


def test_a_column_is_told_by_its_own_suite(results):
    assert "at most 4 model calls a problem" in generator_text(results, MODEL)
    again = generator_text(results, STRICT)
    assert "kernels of an earlier suite, verified again and not changed" in again
    assert "CUDA C++, Triton" in again
    assert "model calls" not in again


def test_a_search_that_begins_from_kernels_counts_its_calls(results):
    results["summary"]["suites"][1]["limits"] = {"max_calls": 8, "max_candidates": None}
    assert "at most 8 model calls a problem" in generator_text(results, STRICT)


def test_columns_stand_beside_each_other_and_only_one_has_curves_over_calls(results):
    section = kernelbench_section(results, SOURCE)
    assert "| level 1, model | 1 | 1 | 1 | 4.00 |" in section
    assert "| level 1, model, strict | 1 | 1 | 1 | 2.00 |" in section
    page = tables(results, SOURCE)
    shipped, strict = page.split("### Generator: model, strict")
    assert "#### By model calls" in shipped
    assert "#### By model calls" not in strict, "nobody was called"
