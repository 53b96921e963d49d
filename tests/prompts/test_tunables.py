"""`TUNABLES` is read from the tree; what is wrong with it is said and nothing is run."""

import pytest

from hotloop.prompts.tunables import read_tunables

OWN = "BLOCK, WARPS = 64, 4\n"


def choices(source):
    space = read_tunables(source).space
    return space and {d.name: d.choices for d in space.dimensions}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ('{"BLOCK": [64, 128]}', {"BLOCK": (64, 128)}),
        ('{"BLOCK": (32, 128), "WARPS": [8]}', {"BLOCK": (64, 32, 128), "WARPS": (4, 8)}),
        ('{"BLOCK": [128, 128, 64]}', {"BLOCK": (64, 128)}),
    ],
)
def test_a_declaration_is_a_space_that_starts_at_the_modules_values(declared, expected):
    assert choices(f"{OWN}TUNABLES = {declared}\n") == expected
    assert choices(f"{OWN}TUNABLES: dict = {declared}\n") == expected


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("make()", "literal"),
        ("[1]", "map names"),
        ('{"BLOCK": []}', "list of values"),
        ('{"BLOCK": 64}', "list of values"),
        ('{"BLOCK": [None]}', "numbers"),
        ('{"BLOCK": [1e999]}', "numbers"),
        ('{"NOT_SET": [1]}', "sets no constant NOT_SET"),
        ('{"a b": [1]}', "no name"),
        ('{"BLOCK": %s}' % list(range(9999)), "combinations"),  # noqa: UP031
    ],
)
def test_a_wrong_one_is_told(declared, problem):
    found = read_tunables(f"{OWN}TUNABLES = {declared}\n")
    assert found.space is None
    assert problem in found.problem


@pytest.mark.parametrize("source", [OWN, "def (", "class A:\n    TUNABLES = {'B': [1]}\n"])
def test_none_is_no_problem(source):
    assert read_tunables(source) == (None, None)
