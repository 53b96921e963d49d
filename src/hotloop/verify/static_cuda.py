"""The static rules for CUDA C++: identifiers and headers outside comments.

The text is read as the preprocessor reads it: lines that end in a backslash are joined first, also
within a name, and a comment inside a literal is none. Literals stay, for asm is in them. Where the
text pastes tokens, a banned name may not be had from two of its own tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hotloop.verify.static_finding import Finding
from hotloop.verify.static_names import BANNED_HEADERS, BANNED_IDENTIFIERS, BANNED_STD

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_HEADER = re.compile(r"^\s*#\s*include\s*[<\"]\s*([^>\"]+?)\s*[>\"]")
_STD = re.compile(r"\bstd\s*::\s*(\w+)")
_CONTINUED = re.compile(r"(?:[^\n]*\\[ \t]*\r?\n)+[^\n]*")
_TOKEN = re.compile(
    r"""
    (?P<comment> /\*.*?\*/ | //[^\n]*)
    | R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)"
    | "(?:\\.|[^"\\\n])*"
    | '(?:\\.|[^'\\\n])*'
    """,
    re.DOTALL | re.VERBOSE,
)
"""A comment, or a literal: what looks like a comment inside a literal is none."""
_CPP_TEXT = re.compile(r"__global__|#\s*include|\btorch::|\bat::|\bc10::")


def check_cuda(text: str) -> Iterator[Finding]:
    """Yield the broken rules of a CUDA source, by its own line numbers."""
    whole = _TOKEN.sub(_without_comment, _CONTINUED.sub(_joined, text))
    yield from check_identifiers(whole)
    for number, line in enumerate(whole.splitlines(), start=1):
        header = _HEADER.match(line)
        if header and header[1] in BANNED_HEADERS:
            yield _finding(f"#include <{header[1]}>", BANNED_HEADERS[header[1]], number)
        for match in _STD.finditer(line):
            if match[1] in BANNED_STD:
                yield _finding(f"std::{match[1]}", BANNED_STD[match[1]], number)
    if "##" in whole:
        yield from _pasted(whole)


def check_identifiers(text: str) -> Iterator[Finding]:
    """Yield the banned identifiers of any text, wherever in it they stand."""
    for number, line in enumerate(text.splitlines(), start=1):
        for match in _IDENTIFIER.finditer(line):
            reason = BANNED_IDENTIFIERS.get(match.group())
            if reason:
                yield _finding(match.group(), reason, number)


def is_cpp(text: str) -> bool:
    """Whether a string literal of a Python file looks like C++."""
    return _CPP_TEXT.search(text) is not None


def _pasted(text: str) -> Iterator[Finding]:
    tokens = {match.group() for match in re.finditer(r"\w+", text)}
    for name, reason in BANNED_IDENTIFIERS.items():
        if any(name[:i] in tokens and name[i:] in tokens for i in range(1, len(name))):
            yield _finding(name, f"{reason} (pasted by a macro)", None)


def _joined(lines: re.Match[str]) -> str:
    whole = re.sub(r"\\[ \t]*\r?\n", "", lines.group())
    return whole + "\n" * lines.group().count("\n")  # so that the numbers of later lines stay true


def _without_comment(token: re.Match[str]) -> str:
    if token["comment"] is None:
        return token.group()
    return "\n" * token.group().count("\n") or " "


def _finding(what: str, reason: str, line: int | None) -> Finding:
    return Finding("banned_name", f"`{what}` is not allowed: {reason}", line)
