"""Rendering of generated files: one jinja environment, strict about missing values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import jinja2

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.templates.activation import DEVICE_FUNCTIONS

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


LINE_LENGTH = 100


def wrap_arguments(items: Iterable[str], indent: int) -> str:
    """Join arguments by commas, with a new line of `indent` spaces where one would be too long."""
    lines, line = [], ""
    for item in items:
        if line and indent + len(line) + len(item) + 3 > LINE_LENGTH:
            lines.append(line.rstrip())
            line = ""
        line += f"{item}, "
    return ("\n" + " " * indent).join([*lines, line.rstrip()])


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hotloop", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["wrap"] = wrap_arguments
    return environment


def render_candidate(template: str, values: Mapping[str, Any]) -> Candidate:
    """Render a kernel file and wrap it as a candidate.

    Raises:
        SyntaxError: the result is no Python; a bug in the template.
    """
    text = _environment().get_template(template).render(**values)
    text = re.sub(r"\n{4,}", "\n\n\n", text)
    text = re.sub(r"[ \t]+\n", "\n", text).strip() + "\n"
    ast.parse(text)
    return Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=text),))


@cache
def reserved_names(*templates: str) -> frozenset[str]:
    """Return the identifiers that the fixed parts of templates use; expressions need others."""
    environment = _environment()
    names: set[str] = {"self", "tanh", "libdevice", *DEVICE_FUNCTIONS}
    for template in templates:
        assert environment.loader is not None
        text = environment.loader.get_source(environment, template)[0]
        for notation in (r"\{%.*?%\}", r"\{\{.*?\}\}", r'""".*?"""', r"#[^\n]*"):
            text = re.sub(notation, " ", text, flags=re.DOTALL)
        names.update(_IDENTIFIER.findall(text))
    return frozenset(names)


def identifiers(lines: Iterable[str]) -> list[str]:
    """Return the identifiers in `lines`, each once, in order."""
    found: dict[str, None] = {}
    for line in lines:
        found.update(dict.fromkeys(_IDENTIFIER.findall(line)))
    return list(found)


def assigned(lines: Iterable[str]) -> list[str]:
    """Return the names that the statements in `lines` assign."""
    return [line.split(" = ", 1)[0] for line in lines if " = " in line]
