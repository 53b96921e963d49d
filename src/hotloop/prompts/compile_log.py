"""The first errors of a compiler, each with the candidate's own lines around it."""

from __future__ import annotations

import re
from typing import NamedTuple

from hotloop.core.candidate import Candidate

MAX_ERRORS = 3
CONTEXT_LINES = 2

_PLACES = (
    # nvcc and NVRTC: kernel.cu(12): error: ...        gcc and Triton: kernel.py:12:5: error: ...
    re.compile(r"(?P<file>[\w.-]+\.(?:cu|cuh|py|cpp|h))\((?P<line>\d+)\)\s*:?\s*(?P<text>.*)"),
    re.compile(r"(?P<file>[\w.-]+\.(?:cu|cuh|py|cpp|h)):(?P<line>\d+)(?::\d+)?:\s*(?P<text>.*)"),
)
_NO_ERROR = re.compile(r"\s*(?:fatal\s+)?(?:warning|note|remark)\b", re.IGNORECASE)


class CompileError(NamedTuple):
    """One error: where, and what the compiler says."""

    path: str
    line: int
    text: str


def first_errors(log: str) -> list[CompileError]:
    """Return the first errors of a log that name a place; warnings and notes are left out."""
    found: dict[tuple[str, int], CompileError] = {}
    for row in log.split("\n"):
        match = next((m for place in _PLACES if (m := place.search(row))), None)
        if match is None or _NO_ERROR.match(match["text"]):
            continue
        error = CompileError(match["file"], int(match["line"][:7]), match["text"].strip())
        found.setdefault((error.path, error.line), error)
        if len(found) == MAX_ERRORS:
            break
    return list(found.values())


def excerpt(candidate: Candidate, path: str, line: int) -> str | None:
    """Return the lines around one line of the candidate, that line marked; None if there is none.

    Args:
        candidate: whose file it is.
        path: a file's name, with or without folders.
        line: from 1.
    """
    name = path.rsplit("/", 1)[-1]
    text = next((s.text for s in candidate.sources if s.path.rsplit("/", 1)[-1] == name), None)
    if text is None:
        return None
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None
    first, last = max(1, line - CONTEXT_LINES), min(len(lines), line + CONTEXT_LINES)
    width = len(str(last))
    return "\n".join(
        f"{'>' if at == line else ' '} {at:{width}} | {lines[at - 1]}"
        for at in range(first, last + 1)
    )
