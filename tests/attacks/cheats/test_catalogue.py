"""Every entry of the catalogue of reward hacks has a cheat in the corpus, or a reason."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from corpus import load_rows

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ENTRIES = 50
ELSEWHERE = {
    int(number): row
    for number, row in tomllib.loads(
        (HERE.parent / "catalogue.toml").read_text(encoding="utf-8")
    ).items()
}


def test_each_entry_has_one_place() -> None:
    in_corpus = {number for row in load_rows(HERE) for number in row.numbers}
    assert in_corpus.isdisjoint(ELSEWHERE)
    assert sorted(in_corpus | set(ELSEWHERE)) == list(range(1, ENTRIES + 1))


@pytest.mark.parametrize("number", sorted(ELSEWHERE))
def test_an_entry_without_a_cheat_says_why(number: int) -> None:
    row = ELSEWHERE[number]
    assert row["what"]
    assert row["why"]
    for name in row.get("tests", ()):
        path, function = name.split("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^def {function}\b", text, re.MULTILINE), name
