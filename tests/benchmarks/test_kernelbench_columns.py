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
    again = made_row("1/1", 2.0, column=STRICT, calls=0, best_is_start=True, start_of="somebody")
    found = made_results({MODEL: [asked], STRICT: [again]})
    shipped, strict = found["summary"]["suites"]
    strict["options"] |= {
        "precision": "strict", "start": "model, 0123abcd", "language": "cuda, triton"
    }  # fmt: skip
    strict["limits"] = {"max_calls": None, "max_candidates": 1}
    strict["starts"] = {"kernels": 1, "of": ["somebody"], "only": True}
    return found


def test_a_column_is_told_by_its_own_suite(results):
    assert "at most 4 model calls a problem, Triton" in generator_text(results, MODEL)
    results["rows"].append(made_row("1/2", 2.0, calls=3))
    assert "at most 4 model calls a problem (2 to 3 were made)" in generator_text(results, MODEL)
    again = generator_text(results, STRICT)
    assert "kernels of an earlier suite, verified again and not changed" in again
    assert "CUDA C++, Triton" in again
    assert "model calls" not in again
    assert "began from" not in generator_text(results, MODEL)


def test_a_search_that_begins_from_kernels_says_whose_and_that_their_calls_do_not_count(results):
    suite = results["summary"]["suites"][1]
    suite["limits"] = {"max_calls": 8, "max_candidates": 1}
    suite["starts"] = {"kernels": 1, "of": ["an older one"], "only": False}
    told = generator_text(results, STRICT)
    assert "at most 8 model calls a problem" in told
    assert "verified again and not changed" not in told, "one candidate is no word on which"
    assert "1 verified kernel(s) of an earlier suite, written by an older one; what was" in told
    assert "what was spent on those is not counted" in told
    assert "In 1 of 1 solved problems the best kernel is the one that it began from" in told
    results["rows"][1]["best_is_start"] = False
    assert "In 0 of 1 solved problems" in generator_text(results, STRICT)


def test_columns_stand_beside_each_other_and_only_one_has_curves_over_calls(results):
    section = kernelbench_section(results, SOURCE)
    assert "| level 1, model | 1 | 1 | 1 | 4.00 |" in section
    assert "| level 1, model, strict | 1 | 1 | 1 | 2.00 |" in section
    page = tables(results, SOURCE)
    shipped, strict = page.split("### Generator: model, strict")
    assert "#### By model calls" in shipped
    assert "#### By model calls" not in strict, "nobody was called"
