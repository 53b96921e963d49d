"""Statements that are too long for a line, folded at the operators of their outermost level."""

from __future__ import annotations

from collections.abc import Iterable

from hotloop.templates.source import LINE_LENGTH

_JOINTS = (" & ", " | ", " + ")


def folded(lines: Iterable[str], indent: int) -> list[str]:
    """Return statements of the form `name = value`, the long ones over several lines."""
    result: list[str] = []
    for line in lines:
        name, _, value = line.partition(" = ")
        parts = _parts(value)
        if indent + len(line) <= LINE_LENGTH or len(parts) < 2:
            result.append(line)
        else:
            result += [f"{name} = (", *(f"    {part}" for part in parts), ")"]
    return result


def _parts(value: str) -> list[str]:
    """Split at the first kind of joint that stands outside of parentheses."""
    for joint in _JOINTS:
        depth, start, parts = 0, 0, []
        for position, character in enumerate(value):
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
            if depth == 0 and value.startswith(joint, position):
                parts.append(value[start:position])
                start = position + 1
        if parts:
            return [*parts, value[start:]]
    return [value]
