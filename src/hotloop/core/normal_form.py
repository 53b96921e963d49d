"""The normal form of a candidate: two with the same one are the same program but for its looks.

Python is compared by its syntax tree, so that comments, blank lines, quotes and brackets without a
meaning say nothing; names, constants and docstrings count. CUDA C++ is compared by lines without
comments, blank lines and indentation. What may make a difference is taken to make one: comments in
CUDA source inside a Python string, the first comment of a `.cu` file (it describes the launch), and
sources that ask for their own line numbers.

Compiled kernels are not compared: equal normal forms compile alike, but not the other way round.
"""

from __future__ import annotations

import ast
import re

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.python_source import parse_python
from hotloop.core.record import digest

_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<literal>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<blank>[ \t\r\f\v]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_HEADER = re.compile(r"\s*/\*.*?\*/", re.DOTALL)
_VERBATIM = re.compile(r"""__LINE__|assert|\\\r?\n|R"|'\w*'\w""")
"""CUDA sources that are compared as they are: line numbers (`assert` prints its own), continued
lines (also of comments), raw strings, and digit separators, which look like character literals."""
_OWN_TEXT = re.compile(r"\b(inspect|traceback|linecache|__file__|co_firstlineno|f_lineno)\b")
"""Python sources that may read themselves."""


def normal_form(candidate: Candidate) -> str:
    """Return 16 hex digits: a candidate's id with the looks of its sources left out."""
    forms = [[source.path, _form(source)] for source in candidate.sources]
    return digest([candidate.language, forms, candidate.entry, candidate.pins])


def _form(source: SourceFile) -> str:
    if source.path.endswith(".py"):
        return _python(source.text)
    if source.path.endswith((".cu", ".cuh", ".cpp", ".h", ".hpp")):
        return _cuda(source.text)
    return source.text


def _python(text: str) -> str:
    if _OWN_TEXT.search(text):
        return text
    try:
        return ast.dump(parse_python(text))
    except (SyntaxError, RecursionError, MemoryError):
        return text


def _cuda(text: str) -> str:
    if _VERBATIM.search(text):
        return text
    header = _HEADER.match(text)
    start = 0 if header is None else header.end()
    lines = _TOKEN.sub(_replace, text[start:]).split("\n")
    kept = [line.strip() for line in lines]
    return "\n".join([text[:start], *(line for line in kept if line)])


def _replace(match: re.Match[str]) -> str:
    return match[0] if match.lastgroup == "literal" else " "
