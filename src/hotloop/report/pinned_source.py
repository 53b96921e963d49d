"""A problem file with the values of `--set` written into it.

A result must run without hotloop, so the copy of the problem that goes beside a kernel has to hold
the sizes that the kernel was verified at. This is text in, text out: nothing is executed, comments
and layout stay as the user wrote them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from hotloop.core.python_source import parse_python

_MARK = "# set on the command line"


def with_settings(source: str, settings: Mapping[str, int | float | str]) -> str:
    """Return `source` with `NAME = value` after each top-level statement that binds a set name.

    Constants derived further down follow. A name that the file never binds is set at its top.

    Raises:
        SyntaxError: `source` is no Python.
    """
    if not settings:
        return source
    body = parse_python(source).body
    lines = source.splitlines()
    insertions: dict[int, list[str]] = {}
    unbound = dict(settings)
    for statement in body:
        for name in _bound_names(statement):
            if name in settings:
                unbound.pop(name, None)
                _insert(insertions, _last_line(statement), name, settings[name])
    top = _first_free_line(body)
    for name, value in unbound.items():
        _insert(insertions, top, name, value)
    out: list[str] = []
    for number in range(len(lines) + 1):
        if number:
            out.append(lines[number - 1])
        out.extend(insertions.get(number, ()))
    return "\n".join(out) + "\n"


def _insert(
    insertions: dict[int, list[str]], line: int, name: str, value: int | float | str
) -> None:
    insertions.setdefault(line, []).append(f"{name} = {value!r}  {_MARK}")


def _bound_names(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level assignment binds, tuples included."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return set()
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}


def _last_line(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _first_free_line(body: list[ast.stmt]) -> int:
    """Return the line after the module docstring and `from __future__` imports (0: the top)."""
    line = 0
    for index, statement in enumerate(body):
        is_doc = index == 0 and isinstance(statement, ast.Expr)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (is_doc or is_future):
            break
        line = _last_line(statement)
    return line
