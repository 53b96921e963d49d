"""Read Python that somebody else wrote: one kind of error, and none of CPython's own making.

In CPython 3.11 a parse that fails while its tree is built leaves the depth counter
of the whole interpreter wrong, and another one, in any thread, ends with `SystemError: AST
constructor recursion depth mismatch` (python/cpython issue 106905). Parsing the same text again
then works.
"""

from __future__ import annotations

import ast
import threading
import warnings

PARSES = 3
"""How often the same text is parsed before CPython is believed."""

_lock = threading.Lock()


class Unparsable(SyntaxError):
    """Python that may be valid, and cannot be read: nested too deeply, or with null bytes."""


def parse_python(text: str, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree; warnings about the text are not shown.

    Raises:
        SyntaxError: it is not Python; `Unparsable` where that is not known.
    """
    if "\0" in text:  # SyntaxError, without a line, or ValueError: as the version of Python likes
        raise Unparsable("expected Python that can be read, got null bytes; take them out")
    # The lock: trees are built one at a time, and `catch_warnings` changes the filters of all
    # threads.
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for left in reversed(range(PARSES)):
            try:
                return ast.parse(text, filename)
            except (ValueError, RecursionError, MemoryError) as exc:
                raise Unparsable(_unread(exc)) from None
            except SystemError as exc:
                if not left:
                    raise Unparsable(_unread(exc)) from None
    raise AssertionError("each parse returns or raises")


def _unread(exc: Exception) -> str:
    cure = "save it as UTF-8" if isinstance(exc, UnicodeError) else "write it flatter"
    return f"expected Python that can be read, got {str(exc) or type(exc).__name__}; {cure}"


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` as it is written; what is no name is left out: `f().c` gives `c`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))
