"""What a compiler said before it aborted: the lines that name the error, out of a long log.

MLIR prints the error first, then the whole program, then a reproducer of many kilobytes. The error
is a diagnostic with the candidate's own line, a failed assertion, or `LLVM ERROR`.
"""

from __future__ import annotations

import re

MAX_LINES, MAX_CHARS = 6, 400
_DIAGNOSTIC = re.compile(r'([\w.-]+\.py)"?:(\d+):(\d+)\)*: error: (.*)$')
_FATAL = re.compile(r"^LLVM ERROR: .*")
_ASSERTION = re.compile(r"Assertion [`'](.*)' failed")
_REASON = re.compile(r'&& "([^"]+)"$|^"([^"]+)" &&')
"""The text in `assert(condition && "text")`."""


def last_words(log: str) -> str:
    """Return the lines of a log that say why the compiler gave up; empty where none does.

    Diagnostics come as `kernel.py:12:5: error: ...`, without the folder; assertions as their text.
    """
    told = [_told(line.strip())[:MAX_CHARS] for line in log.splitlines()]
    return "\n".join(list(dict.fromkeys(filter(None, told)))[:MAX_LINES])


def _told(line: str) -> str:
    if diagnostic := _DIAGNOSTIC.search(line):
        place, row, column, text = diagnostic.groups()
        return f"{place}:{row}:{column}: error: {text}"
    if assertion := _ASSERTION.search(line):
        reason = _REASON.search(assertion[1])
        text = assertion[1] if reason is None else reason[1] or reason[2]
        return f"assertion failed: {text}"
    fatal = _FATAL.search(line)
    return fatal[0] if fatal else ""
