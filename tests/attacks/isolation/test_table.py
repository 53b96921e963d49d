"""The table of attacks is whole, and what it names exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from ways import CASES

ROOT = Path(__file__).parents[3]
TABLE = {
    int(number): row
    for number, row in tomllib.loads(
        (Path(__file__).parent / "cases.toml").read_text(encoding="utf-8")
    ).items()
}
ATTACKS = 62
MIN_ON_CPU = 45
NEVER_EXECUTED = (53, 54)


def test_every_attack_has_a_place_or_a_reason() -> None:
    assert sorted(TABLE) == list(range(1, ATTACKS + 1))
    known = {"attack", "here", "tests", "gpu", "static", "not_tested"}
    for number, row in TABLE.items():
        assert set(row) <= known, number
        assert row.get("here") or row.get("tests") or row.get("not_tested"), number


def test_every_case_stands_in_the_table_under_its_number() -> None:
    by_number = {number: set(row.get("here", ())) for number, row in TABLE.items()}
    assert {name for names in by_number.values() for name in names} == {c.name for c in CASES}
    for case in CASES:
        assert case.name in by_number[case.number], case


@pytest.mark.parametrize("number", sorted(TABLE))
def test_the_tests_that_are_named_exist(number: int) -> None:
    for name in TABLE[number].get("tests", ()):
        path, function = name.split("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^def {function}\b", text, re.MULTILINE), name


def test_enough_of_them_run_without_a_gpu() -> None:
    on_cpu = [
        number
        for number, row in TABLE.items()
        if row.get("here") or (row.get("tests") and not row.get("gpu"))
    ]
    assert len(on_cpu) >= MIN_ON_CPU


def test_what_can_take_a_gpu_down_is_refused_by_text_alone() -> None:
    for number in NEVER_EXECUTED:
        assert TABLE[number].get("static"), number
        assert "here" not in TABLE[number]
    assert not [c for c in CASES if c.number in NEVER_EXECUTED]
