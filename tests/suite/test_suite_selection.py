"""Which problems `--levels` and `--problems` choose, and what they refuse."""

import pytest

from hotloop.errors import ConfigError
from hotloop.problems import KernelBenchEntry
from hotloop.suite.selection import select

ENTRIES = [
    KernelBenchEntry(level=level, problem_id=number, title=f"{number}_X", code="")
    for level, numbers in ((1, range(1, 6)), (2, (1, 2, 4)), (3, (1,)))
    for number in numbers
]


def chosen(levels, problems, entries=ENTRIES):
    return [(e.level, e.problem_id) for e in select(entries, levels, problems)]


@pytest.mark.parametrize(
    ("levels", "problems", "expected"),
    [
        (None, None, [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 1), (2, 2), (2, 4)]),
        ("3", None, [(3, 1)]),
        ("3,2,2", None, [(2, 1), (2, 2), (2, 4), (3, 1)]),
        ("1", "1-2,5", [(1, 1), (1, 2), (1, 5)]),
        (None, "1-2", [(1, 1), (1, 2), (2, 1), (2, 2)]),
        (None, "2/4, 3/1 ,1/2-3", [(1, 2), (1, 3), (2, 4), (3, 1)]),
        ("1", "1/2,2,2", [(1, 2)]),
        ("2", "1-4", [(2, 1), (2, 2), (2, 4)]),
    ],
)
def test_each_problem_once_and_in_order(levels, problems, expected):
    assert chosen(levels, problems) == expected


@pytest.mark.parametrize(
    ("levels", "problems", "why"),
    [
        ("7", None, "no level 7; the data set has 1, 2, 3"),
        ("one", None, "expected numbers like 1,2"),
        (",", None, "--levels"),
        (None, "6", "level 1 of the data set has no problem 6; it has 1 to 5"),
        ("2", "3", "no problem 3"),
        ("1", "1-999999999999", "no problem 999999999999"),
        ("1", "3-2", "smaller number first"),
        ("1", "2/1", "--levels 1 does not have this level"),
        (None, "9/1", "no level 9"),
        (None, "a", "got 'a'"),
        (None, "1-", "got '1-'"),
        (None, "", "--problems"),
    ],
)
def test_what_is_not_there_is_one_line(levels, problems, why):
    with pytest.raises(ConfigError) as error:
        chosen(levels, problems)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_a_data_set_without_the_default_levels_says_so():
    with pytest.raises(ConfigError, match="no level 1; the data set has 3"):
        chosen(None, None, ENTRIES[-1:])


def test_a_number_that_stands_twice_is_the_first():
    twice = KernelBenchEntry(level=3, problem_id=1, title="1_Y", code="")
    (entry,) = select([*ENTRIES, twice], "3", None)
    assert entry.title == "1_X"
