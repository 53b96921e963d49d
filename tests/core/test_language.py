"""One table of languages, and everything that lists them agrees with it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

import hotloop.prompts
from hotloop.config import Settings
from hotloop.core.language import LANGUAGES, allowed_names, is_allowed, runs_on_cpu
from hotloop.core.problem import Policy


def test_settings_take_the_languages_of_the_table() -> None:
    assert get_args(Settings.model_fields["language"].annotation) == tuple(LANGUAGES)
    assert Settings.model_fields["language"].default == next(iter(LANGUAGES))


def test_every_language_has_rules_and_skeletons_for_prompts() -> None:
    folder = Path(hotloop.prompts.__file__).parent / "templates"
    for name in LANGUAGES:
        parts = [f"rules_{name}", f"skeleton_{name}_attention", f"skeleton_{name}_model"]
        assert [p for p in parts if not (folder / f"_{p}.md.jinja").exists()] == []


def test_the_default_policy_allows_every_language() -> None:
    assert set(allowed_names(Policy().languages)) == set(LANGUAGES)


@pytest.mark.parametrize(
    ("name", "allowed", "expected"),
    [
        ("gluon", ("triton",), True),
        ("gluon", ("gluon",), True),
        ("triton", ("gluon",), False),
        ("gluon", ("cuda",), False),
        ("triton", (), False),
        ("mine", ("mine",), True),
        ("mine", ("triton",), False),
    ],
)
def test_a_dialect_is_allowed_where_its_language_is(
    name: str, allowed: tuple[str, ...], expected: bool
) -> None:
    assert is_allowed(name, allowed) is expected


def test_only_triton_runs_without_a_gpu() -> None:
    assert [name for name in LANGUAGES if runs_on_cpu(name)] == ["triton"]
