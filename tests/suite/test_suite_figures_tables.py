"""The text tables say what the figures say."""

from suite_figure_runs import Made, run_at

from hotloop.core.verdict import Status
from hotloop.suite.figures import suite_figures
from hotloop.suite.tables import suite_tables

SOLVED = Made(outcomes=(1.0,), finals={1: 1.0})


def lines_of(*runs):
    text = suite_tables(suite_figures(runs))
    return [line.split() for line in text.splitlines()], text


def test_numbers_stand_in_their_columns(tmp_path):
    failed = Made(outcomes=(Status.INCORRECT_NUMERICAL,))
    lines, text = lines_of(run_at(tmp_path, 1, SOLVED), run_at(tmp_path, 2, failed))
    assert ["level", "1", "all", "2", "1", "50.0", "1", "1", "NO_KERNEL,", "1", "PASSED"] in lines
    # Ratios 4 and 1.0 for the failure: mean 2, median 2.5; one win of two.
    half = ["0.500"] * 6
    assert [
        "level",
        "1",
        "eager",
        "2",
        *half,
        "1",
        "1",
        "2.000",
        "2.500",
        "4.000",
        "0",
        "0",
    ] in lines
    assert ["1/2", "NO_KERNEL", "calls"] in lines
    assert "model/as_shipped/cuda" in text
    assert "Undecidable" not in text


def test_what_is_unknown_is_called_so(tmp_path):
    silent = Made(outcomes=(1.0,), finals={1: 1.0}, tokens=(None,), usd=None)
    lines, _ = lines_of(run_at(tmp_path, 1, silent))
    assert ["level", "1", "best", "10", "1", "unknown", "unknown", "0"] in lines


def test_what_cannot_be_decided_has_a_table(tmp_path):
    faked = Made(
        outcomes=(1.0,), finals={1: 1.0}, info={"rankable": False, "notes": ("zeros pass",)}
    )
    lines, text = lines_of(run_at(tmp_path, 1, faked))
    assert "Undecidable: in no target" in text
    assert ["1/1", "PASSED", "zeros", "pass"] in lines
    assert "Not solved" not in text
