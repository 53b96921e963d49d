"""Two versions of a source side by side: rows, with what changed within a line marked.

Sources are foreign text: everything is escaped, and long ones are cut, because comparing takes time
in proportion to the product of the lengths.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from hotloop.report.display import one_line, visible

CONTEXT = 3
"""Lines that are the same and stay beside a change."""
MOST_LINES = 2_000
"""Of each side that are compared."""
MOST_CHARACTERS = 400
"""Of a line within which changes are looked for."""
ALIKE = 0.4
"""Lines less alike than this are shown as changed throughout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One line of one version."""

    number: int | None = None
    """From 1; None where this side has no line."""
    text: Markup = Markup("")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the old version beside one of the new."""

    kind: str
    """`same`, `changed`, `removed`, `added`, or `skipped`: then only `count` counts."""
    old: Side = Side()
    new: Side = Side()
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """One file in both versions."""

    path: str
    rows: tuple[Row, ...]
    added: int
    removed: int
    cut: int
    """Lines that were not compared."""


def compare_files(old: Mapping[str, str], new: Mapping[str, str]) -> list[FileDiff]:
    """Return the files that differ, in order of path."""
    listed = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
    return [_compare(path, old.get(path, ""), new.get(path, "")) for path in listed]


def _compare(path: str, old_text: str, new_text: str) -> FileDiff:
    old, new = _lines(old_text), _lines(new_text)
    cut = max(0, len(old) - MOST_LINES) + max(0, len(new) - MOST_LINES)
    old, new = old[:MOST_LINES], new[:MOST_LINES]
    rows: list[Row] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=True)
    blocks = matcher.get_opcodes()
    for place, (tag, a, b, c, d) in enumerate(blocks):
        if tag == "equal":
            is_edge = place == 0, place == len(blocks) - 1
            rows += _same(old, (a, b), c, is_edge)
        else:
            rows += _changed(old[a:b], new[c:d], a, c)
    return FileDiff(
        path=one_line(path),
        rows=tuple(rows),
        added=sum(row.kind in ("added", "changed") for row in rows),
        removed=sum(row.kind in ("removed", "changed") for row in rows),
        cut=cut,
    )


def _lines(text: str) -> list[str]:
    lines = visible(text).split("\n")
    return lines if lines[-1] else lines[:-1]


def _same(
    old: Sequence[str], span: tuple[int, int], new_start: int, is_edge: tuple[bool, bool]
) -> Iterator[Row]:
    """Yield equal lines, those far from a change as one row with their number."""
    first, last = span
    head = first if is_edge[0] else first + CONTEXT
    tail = last if is_edge[1] else last - CONTEXT
    if tail - head <= 1:
        head = tail = last
    shift = new_start - first
    for n in range(first, last):
        if head <= n < tail:
            if n == head:
                yield Row(kind="skipped", count=tail - head)
            continue
        text = escape(old[n])
        yield Row(
            kind="same",
            old=Side(number=n + 1, text=text),
            new=Side(number=n + 1 + shift, text=text),
        )


def _changed(
    old: Sequence[str], new: Sequence[str], old_start: int, new_start: int
) -> Iterator[Row]:
    both = min(len(old), len(new))
    for n in range(both):
        left, right = _within(old[n], new[n])
        yield Row(
            kind="changed",
            old=Side(number=old_start + n + 1, text=left),
            new=Side(number=new_start + n + 1, text=right),
        )
    for n in range(both, len(old)):
        yield Row(kind="removed", old=Side(number=old_start + n + 1, text=escape(old[n])))
    for n in range(both, len(new)):
        yield Row(kind="added", new=Side(number=new_start + n + 1, text=escape(new[n])))


def _within(old: str, new: str) -> tuple[Markup, Markup]:
    """Return both lines with what differs in `<mark>`."""
    if max(len(old), len(new)) > MOST_CHARACTERS:
        return escape(old), escape(new)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if matcher.quick_ratio() < ALIKE:
        return escape(old), escape(new)
    left, right = [], []
    for tag, a, b, c, d in matcher.get_opcodes():
        left.append(_marked(old[a:b], tag != "equal"))
        right.append(_marked(new[c:d], tag != "equal"))
    return Markup("").join(left), Markup("").join(right)


def _marked(text: str, is_marked: bool) -> Markup:
    if not text:
        return Markup("")
    return Markup("<mark>{}</mark>").format(text) if is_marked else escape(text)
