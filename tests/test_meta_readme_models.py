"""What the README says of models is what the code has."""

from pathlib import Path

import pytest

from hotloop.config import DEFAULT_CALLS, DEFAULT_MAX_USD
from hotloop.llm.presets import presets

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
ROWS = [line for line in README.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("name", sorted(presets()))
def test_every_preset_stands_in_the_table_with_its_key(name):
    preset = presets()[name]
    row = next(line for line in ROWS if f"`{name}:NAME`" in line)
    assert ("none needed" if preset.key_optional else f"`{preset.key}`") in row


def test_no_preset_stands_in_the_table_that_does_not_exist():
    named = {part.split(":NAME")[0] for row in ROWS for part in row.split("`") if ":NAME" in part}
    assert named - {"PRESET"} == set(presets())


def test_the_default_limits_are_those_of_the_code():
    assert f"past {DEFAULT_MAX_USD:g} dollars" in README
    assert f"`--parallel {DEFAULT_CALLS}`" in README
