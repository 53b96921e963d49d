"""The Python in a prompt: fenced blocks, or functions that stand bare or indented in the prose.

A bare function ends at the first line that is neither blank nor indented deeper than its `def`.
Prose that looks like code but does not parse is prose; a `def` that does not parse is an error.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotloop.core.python_source import parse_python
from hotloop.errors import ConfigError
from hotloop.problems.constants import bound_names

_FENCE = re.compile(r"\s*(```+|~~~+)")
_DEF = re.compile(r"\s*(?:async\s+)?def\s+\w+\s*\(")
_START = re.compile(
    r"\s*(?:@\w|def\s+\w+\s*\(|class\s+\w+\s*[(:]|import\s+\w|from\s+[\w.]+\s+import\b)"
)
# `S = 8192.` ends a sentence, it is no float.
_CONSTANT = re.compile(r"\s*[A-Za-z_]\w*\s*=\s*[^=\s](?:.*[^.,;:\s])?\s*$")


@dataclass(frozen=True, slots=True)
class Statement:
    """One top-level Python statement of a prompt."""

    node: ast.stmt
    first_line: int
    """1-based line of the prompt, decorators included."""
    lines: tuple[str, ...]
    """Source lines without the indentation that they share in the prompt."""
    binds: frozenset[str]
    """Names that it defines."""
    reads: frozenset[str]
    """Names that occur in it, local ones included."""


def find_code(text: str, name: str) -> list[Statement]:
    """Return the top-level Python statements of a prompt, in order.

    Raises:
        ConfigError: a function in it is no valid Python; the message has the prompt's line.
    """
    lines = text.split("\n")
    code: list[Statement] = []
    bare = list(lines)
    for start, end in _fenced(lines):
        block = _parse(lines[start:end], start)
        if block is not None:
            code += block
            bare[start:end] = [""] * (end - start)
    return sorted(code + list(_bare_code(bare, name)), key=lambda s: s.first_line)


def needed_statements(code: Sequence[Statement], wanted: set[str]) -> list[Statement]:
    """Return the statements that define `wanted` and, in turn, whatever these read."""
    names = wanted | {"*"}
    while True:
        chosen = [s for s in code if s.binds & names]
        more = {n for s in chosen for n in s.reads} - names
        if not more:
            return chosen
        names |= more


def render(
    statements: Sequence[Statement], *, header: Sequence[str], footer: Sequence[str] = ()
) -> str:
    """Return a Python file with the statements on the lines they have in the prompt.

    The header goes above them: a line each where there is room, else on one line; only a prompt
    that begins with code is moved down, by that one line.
    """
    room = min((s.first_line for s in statements), default=1) - 1
    top = list(header) if len(header) <= room else ["; ".join(header)]
    lines = top + [""] * (room - len(top))
    for statement in statements:
        at = statement.first_line - 1 + (0 if room else 1)
        lines += [""] * (at + len(statement.lines) - len(lines))
        lines[at : at + len(statement.lines)] = statement.lines
    return "\n".join([*lines, "", *footer]).rstrip() + "\n"


def _fenced(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield (first, after last) 0-based line of the inside of each fenced block."""
    start, fence = 0, ""
    for i, line in enumerate(lines):
        match = _FENCE.match(line)
        if match is None:
            continue
        if not fence:
            start, fence = i + 1, match[1]
        elif match[1].startswith(fence):
            yield start, i
            fence = ""


def _bare_code(lines: Sequence[str], name: str) -> Iterator[Statement]:
    i = 0
    while i < len(lines):
        if not (_START.match(lines[i]) or _CONSTANT.match(lines[i])):
            i += 1
            continue
        end = _end_of_block(lines, i)
        block = _parse(lines[i:end], i)
        if block is not None:
            yield from block
            i = end
            continue
        if _DEF.match(lines[i]):
            _refuse(lines[i:end], i, name)
        i += 1


def _end_of_block(lines: Sequence[str], start: int) -> int:
    """Return the line after a statement: the first that is not blank and not deeper indented."""
    base = _indent(lines[start])
    end = start + 1
    opened = _depth(lines[start])
    decorated = lines[start].lstrip().startswith("@")
    for i in range(start + 1, len(lines)):
        line = lines[i]
        if opened <= 0 and line.strip() and _indent(line) <= base and not decorated:
            break
        decorated = decorated and (not line.strip() or line.lstrip().startswith("@"))
        opened += _depth(line)
        if line.strip():
            end = i + 1
    return end


def _depth(line: str) -> int:
    """Return how many brackets a line leaves open."""
    return sum(line.count(c) for c in "([{") - sum(line.count(c) for c in ")]}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _dedent(lines: Sequence[str]) -> list[str]:
    shared = min((_indent(line) for line in lines if line.strip()), default=0)
    return [line[shared:].rstrip() for line in lines]


def _parse(lines: Sequence[str], offset: int) -> list[Statement] | None:
    """Return the statements of a block that starts at 0-based line `offset`; None if no Python."""
    source = _dedent(lines)
    try:
        tree = parse_python("\n" * offset + "\n".join(source))
    except SyntaxError:
        return None
    statements = []
    for node in tree.body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(d.lineno for d in decorators)])
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        binds = frozenset(bound_names(ast.Module([node], [])))
        text = tuple(source[first - 1 - offset : (node.end_lineno or first) - offset])
        statements.append(Statement(node, first, text, binds, frozenset(names)))
    return statements


def _refuse(lines: Sequence[str], offset: int, name: str) -> None:
    try:
        parse_python("\n" * offset + "\n".join(_dedent(lines)))
    except SyntaxError as exc:
        line = exc.lineno or offset + 1
        raise ConfigError(
            f"{name} line {line}: the function in the prompt is no valid Python: {exc.msg}"
        ) from exc
