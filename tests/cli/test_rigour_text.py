"""A reader sees which calls were held to fewer rules; they do not count as exact."""

from dataclasses import replace

import pytest
from test_cli_summary import CASE, verdict

from hotloop.cli.verdict_text import verdict_text
from hotloop.core.verdict import Correctness, Rigour
from hotloop.dashboard.verdict_tables import cases_table
from hotloop.report.verdict_words import exactness, looser_words

FULL = replace(CASE, output="output0", rigour=Rigour.FULL)
ROUGH = replace(FULL, profile="far", rigour=Rigour.ROUGH, rmse=3.0, eager_rmse=1.0)
GROSS = replace(FULL, profile="far", output="output1", rigour=Rigour.GROSS, rmse=9e9)
OLD = replace(FULL, rigour=None)
CUT = replace(FULL, rigour=Rigour.CUT)


def text_of(*cases):
    told = replace(verdict(), correctness=Correctness(cases=cases, deterministic=True))
    return verdict_text(told)


def test_calls_that_were_held_to_fewer_rules_are_told_apart():
    text = text_of(FULL, FULL, ROUGH, ROUGH, GROSS)
    assert "2 of 2 calls as exact as PyTorch\n" in text
    assert "2 more held to wider bounds (far values, output0)" in (text)
    assert "1 more looked at for NaN, Inf and gross errors only (far values, output1)" in text
    assert "worst: nominal, needles values" in text  # not the error that nobody asked about


def test_operands_that_were_cut_are_not_called_exact():
    text = text_of(FULL, CUT)
    assert "1 of 1 calls as exact as PyTorch\n" in text
    assert "1 more right but for operands cut to TF32 where PyTorch rounds them" in text


@pytest.mark.parametrize("cases", [(FULL, FULL), (OLD, OLD), (OLD, FULL)])
def test_calls_that_were_held_to_all_rules_are_as_they_were(cases):
    text = text_of(*cases)
    assert "2 of 2 calls as exact as PyTorch\n" in text
    assert "more" not in text
    assert looser_words(Correctness(cases=cases, deterministic=None)) == []


def test_a_reader_learns_that_no_other_values_were_tried():
    shipped = replace(FULL, profile="shipped")
    assert "2 of 2 calls as exact as PyTorch, all on values that the file draws\n" in text_of(
        shipped, shipped
    )
    assert "file draws" not in text_of(shipped, FULL)
    assert "file draws" not in text_of(shipped, replace(shipped, passed=False, rule="bulk"))


def test_a_failure_under_fewer_rules_says_so():
    failed = replace(GROSS, passed=False, rule="nonfinite", rmse=None)
    text = text_of(FULL, failed)
    assert "1 of 1 calls as exact as PyTorch" in text
    assert "rule nonfinite at [0, 1, 2, 3]; looked at for NaN, Inf and gross errors only" in text


def test_nothing_is_exact_where_nothing_was_asked_to_be():
    assert exactness(Correctness(cases=(GROSS,), deterministic=None)).startswith("0 of 0 ")


def test_each_call_of_the_dashboard_names_its_rules():
    cases = (FULL, ROUGH, GROSS, OLD, CUT)
    told = replace(verdict(), correctness=Correctness(cases=cases, deterministic=None))
    table = cases_table(told)
    assert table is not None
    column = list(table.head).index("held to")
    words = [row[column] for row in table.rows]
    assert words == [
        "all rules", "wider bounds", "NaN, Inf, gross errors", "not recorded",
        "all rules, TF32 cut",
    ]  # fmt: skip
    assert {len(row) for row in table.rows} == {len(table.head)}
