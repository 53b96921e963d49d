"""Rendering of generated files: one jinja environment, strict about missing values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import jinja2

from hotloop.core.candidate import Candidate, SourceFile

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("hotloop", "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


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


def identifiers(lines: Iterable[str]) -> list[str]:
    """Return the identifiers in `lines`, each once, in order."""
    found: dict[str, None] = {}
    for line in lines:
        found.update(dict.fromkeys(_IDENTIFIER.findall(line)))
    return list(found)


def assigned(lines: Iterable[str]) -> list[str]:
    """Return the names that the statements in `lines` assign."""
    return [line.split(" = ", 1)[0] for line in lines if " = " in line]
