"""Apply a unified diff from a model to the files of a known candidate.

Line numbers in such diffs are guesses, so a hunk is found by its lines: exactly first, then without
regard to trailing blanks, then with up to `MAX_FUZZ` context lines left out at its ends (what GNU
patch calls fuzz). Of several places the one nearest to the stated line is taken; without a stated
line the place must be the only one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_HUNKS = 200
"""More are no change but another file."""
MAX_FUZZ = 2
"""Context lines that may differ at each end, as in GNU patch."""

_HUNK = re.compile(r"@@(?:\s*-(\d+)(?:,(\d+))?\s+\+\d+(?:,\d+)?\s*@@)?")
_TARGET = re.compile(r"\+\+\+\s+(?:[ab]/)?(\S+)")


class PatchError(ValueError):
    """A diff does not apply; the message says which hunk and why."""


@dataclass(slots=True)
class Hunk:
    """One change: lines that are there, and what they become."""

    target: str | None
    """The file named above it."""
    line: int | None
    """Stated line in the old file, from 1; None when the header has none."""
    count: int
    """How many old lines the header states; 0 when it has no numbers."""
    lines: list[tuple[str, str]] = field(default_factory=list)
    """(` `, `-` or `+`, text)."""

    @property
    def old(self) -> list[str]:
        """Lines that must be in the file."""
        return [text for mark, text in self.lines if mark != "+"]


def looks_like_diff(text: str) -> bool:
    """Whether a text has at least one hunk that changes something."""
    if not re.search(r"^@@", text, re.MULTILINE):
        return False
    return any(mark != " " for hunk in read_hunks(text) for mark, _ in hunk.lines)


def read_hunks(text: str) -> list[Hunk]:
    """Return the hunks of a diff; what stands before the first is left out."""
    hunks: list[Hunk] = []
    target: str | None = None
    in_hunk = False
    lines = text.split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        header = _HUNK.match(line)
        named = _TARGET.match(line)
        if header is not None:
            line, count = header[1], header[2] or "1"
            hunks.append(Hunk(target, int(line) if line else None, int(count) if line else 0))
            in_hunk = True
        elif line.startswith("--- ") and _TARGET.match(after):
            in_hunk = False  # else it is a removed line that begins with two dashes
        elif named is not None and not in_hunk:
            target = named[1]
        elif in_hunk and not line.startswith("\\"):  # "\ No newline at end of file"
            mark = line[:1] if line[:1] in (" ", "-", "+") else " "
            hunks[-1].lines.append((mark, line[1:] if line[:1] == mark else line))
    for hunk in hunks:
        _strip_blank_end(hunk)
    return [hunk for hunk in hunks if hunk.lines]


def is_cut_off(diff: str) -> bool:
    """Whether the last hunk has fewer old lines than its header states."""
    hunks = read_hunks(diff)
    return bool(hunks) and len(hunks[-1].old) < hunks[-1].count


def apply_diff(files: Mapping[str, str], entry: str, diff: str) -> dict[str, str]:
    """Return the files after a diff. Hunks without a known file name change `entry`.

    Raises:
        PatchError: there is no hunk, or one fits nowhere or in several places.
    """
    hunks = read_hunks(diff)
    if not hunks:
        raise PatchError("expected at least one hunk that starts with `@@`, found none")
    if len(hunks) > MAX_HUNKS:
        raise PatchError(f"expected at most {MAX_HUNKS} hunks, got {len(hunks)}")
    changed = {path: text.split("\n") for path, text in files.items()}
    shift: dict[str, int] = {}
    for number, hunk in enumerate(hunks, 1):
        path = _path_of(hunk, files, entry)
        before = len(changed[path])
        changed[path] = _apply(changed[path], hunk, number, shift.get(path, 0))
        shift[path] = shift.get(path, 0) + len(changed[path]) - before
    return {path: "\n".join(lines) for path, lines in changed.items()}


def _apply(lines: list[str], hunk: Hunk, number: int, shift: int) -> list[str]:
    if not hunk.old:
        if hunk.line is None:
            raise PatchError(f"hunk {number} only adds lines and names no place; add context")
        at = max(0, min(hunk.line + shift, len(lines)))
        return [*lines[:at], *(text for _, text in hunk.lines), *lines[at:]]
    wanted = None if hunk.line is None else hunk.line - 1 + shift
    for fuzz in range(MAX_FUZZ + 1):
        part, skipped = _trimmed(hunk.lines, fuzz)
        old = [text for mark, text in part if mark != "+"]
        if not old:
            break
        place = _place(lines, old, None if wanted is None else wanted + skipped, number)
        if place is not None:
            made = _new_lines(part, lines, place)
            return [*lines[:place], *made, *lines[place + len(old) :]]
    first = next((t for m, t in hunk.lines if m == "-" and t.strip()), hunk.old[0])
    raise PatchError(
        f"hunk {number} does not fit: its context and removed lines are not in the file; copy them "
        f"exactly as they stand there (looked for, among others: {first.strip()[:120]!r})"
    )


def _new_lines(part: list[tuple[str, str]], lines: list[str], at: int) -> list[str]:
    """Return what replaces the old lines; context stays as the file has it."""
    made: list[str] = []
    for mark, text in part:
        if mark == "+":
            made.append(text)
            continue
        if mark == " ":
            made.append(lines[at])
        at += 1
    return made


def _place(lines: list[str], old: list[str], wanted: int | None, number: int) -> int | None:
    """Return where the old lines stand: exactly, else without regard to trailing blanks."""
    for read in (str, str.rstrip):
        key = [read(text) for text in old]
        have = [read(text) for text in lines]
        places = [
            at
            for at in range(len(have) - len(key) + 1)
            if have[at] == key[0] and have[at : at + len(key)] == key
        ]
        if len(places) > 1 and wanted is None:
            raise PatchError(
                f"hunk {number} fits at {len(places)} places; state its line as in "
                "`@@ -120,7 +120,9 @@` or add context"
            )
        if places:
            return min(places, key=lambda at: abs(at - (wanted or 0)))
    return None


def _trimmed(lines: list[tuple[str, str]], fuzz: int) -> tuple[list[tuple[str, str]], int]:
    """Return the hunk without up to `fuzz` context lines at each end, and how many at the top."""
    start, stop = 0, len(lines)
    while start < fuzz and start < stop and lines[start][0] == " ":
        start += 1
    while len(lines) - stop < fuzz and stop > start and lines[stop - 1][0] == " ":
        stop -= 1
    return lines[start:stop], start


def _strip_blank_end(hunk: Hunk) -> None:
    # the blank line between the diff and the end of its fence is no context
    while len(hunk.old) > hunk.count and hunk.lines[-1][0] == " " and not hunk.lines[-1][1].strip():
        hunk.lines.pop()


def _path_of(hunk: Hunk, files: Mapping[str, str], entry: str) -> str:
    name = (hunk.target or "").rsplit("/", 1)[-1]
    return next((path for path in files if path.rsplit("/", 1)[-1] == name), entry)
