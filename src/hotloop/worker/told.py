"""What an untrusted process says in words, made fit for messages and files.

It names its error's kind, the exception's class and text, and the candidate has a hand in all of
them: a class may be called anything. Kinds are those that our code in that process gives; control
and format characters (a terminal's escapes, line breaks in a name) become `?`.
"""

from __future__ import annotations

from typing import Any

MAX_NAME = 120
KINDS = frozenset({
    "compile_error", "contract", "cuda_error", "exception", "needs_gpu", "oom_gpu", "oom_host",
    "out_of_bounds", "out_of_registers", "out_of_resources", "out_of_shared_memory",
})  # fmt: skip
"""Of errors that `failure.py` and the compile lanes describe."""


def kind_of(error: Any) -> str:
    """Return an error's kind, `exception` where it says none that there is."""
    kind = error.get("kind")
    return kind if isinstance(kind, str) and kind in KINDS else "exception"


def name(value: object, limit: int = MAX_NAME) -> str:
    """Return a name as one line of at most `limit` characters."""
    return "".join(c if c.isprintable() else "?" for c in str(value)[:limit])


def words(value: object) -> str:
    """Return a text with its lines and tabs, without other characters that do not print."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in str(value))
