"""Help texts: what they say is what a newcomer sees."""

import re

import pytest
import typer
from typer.testing import CliRunner

from hotloop.cli.main import app

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_defaults_and_forms_in_brackets_are_shown(name):
    told = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "250"}).output
    for parameter in COMMANDS[name].params:
        for words in re.findall(r"\[[^]]+]", getattr(parameter, "help", None) or ""):
            assert words in told, parameter.name
    assert "Usage:" in told


def test_an_option_has_its_default_and_a_model_its_address():
    told = CliRunner().invoke(app, ["optimize", "--help"], env={"COLUMNS": "250"}).output
    assert "[default: 15m]" in told
    assert "PRESET:NAME[@URL]" in told
