"""Whose a run's kernel is: the start's author's, or its generator's."""

from dataclasses import replace

import pytest
from suite_figure_runs import Made, write_run

from hotloop.store.reader import RunReader
from hotloop.suite.figures_rows import SuiteRun, read_row
from hotloop.suite.origin import is_the_start


@pytest.fixture
def chain(tmp_path):
    """A start, its sweep, a draft from it, and a sweep of that."""
    write_run(tmp_path / "run", Made(outcomes=(4.0, 3.0, 2.0, 1.0)), "kernelbench/1/1")
    with RunReader(tmp_path / "run") as reader:
        found = reader.attempts()
    shape = (("start", ()), ("sweep", (1,)), ("optimise", (1,)), ("sweep", (3,)))
    return [
        replace(one, action=action, parents=parents)
        for one, (action, parents) in zip(found, shape, strict=True)
    ]


def test_other_tunables_are_still_the_authors_and_another_source_is_not(chain):
    assert [is_the_start(one, chain) for one in chain] == [True, True, False, False]


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (Made(outcomes=(1.0,), finals={1: 1.0}, action="start"), True),
        (Made(outcomes=(1.0,), finals={1: 1.0}), None),
        (Made(), None),
    ],
)
def test_a_row_says_whether_its_best_is_the_start(tmp_path, made, found):
    write_run(tmp_path / "run", made, "kernelbench/1/1")
    row = read_row(SuiteRun(level=1, problem_id=1, folder=tmp_path / "run"))
    assert row.best_is_start is found
