"""Find code in a reply that has no fences: bare, indented, or between lines of prose."""

from __future__ import annotations

import re
import textwrap

from hotloop.prompts.fences import Block
from hotloop.prompts.programs import MAX_SOURCE_CHARS, error_line, read_program

MAX_CUTS = 40
"""How often a text is shortened in search of its part that is Python."""

_START = re.compile(
    r"^(?:import |from \w[\w.]* import |@\w|class \w|def \w|\"\"\"|#!)", re.MULTILINE
)
_INDENTED = re.compile(r"(?:^(?:[ ]{4,}|\t).*\n?|^[ \t]*\n)+", re.MULTILINE)
_CUDA_START = re.compile(r"^(?:/\*\s*\{|#include|extern \"C\")", re.MULTILINE)


def find_unfenced(text: str) -> list[Block]:
    """Return the code in a text without fences: at most one block."""
    if len(text) > MAX_SOURCE_CHARS:
        return []
    if "__global__" in text and "load_inline" not in text:
        start = _CUDA_START.search(text)
        code = text[start.start() if start else 0 :]
        return [_block(code[: code.rfind("}") + 1], "cuda")]
    if "class ModelNew" not in text:
        return []
    indented = [m.group() for m in _INDENTED.finditer(text + "\n") if "class ModelNew" in m.group()]
    if indented:
        return [_block(textwrap.dedent(indented[-1].expandtabs(4)), "python")]
    start = _START.search(text)
    if start is None:
        return []
    code = without_prose_end(text[start.start() :])
    return [_block(code, "python")] if "class ModelNew" in code else []


def without_prose_end(text: str) -> str:
    """Return code without the lines of prose below it; unchanged where no part is a program.

    Only whole statements at the left margin are cut, so that code which ends in the middle of a
    function is not taken for whole.
    """
    if len(text) > MAX_SOURCE_CHARS:
        return text
    kept = text
    for _ in range(MAX_CUTS):
        line = error_line(kept)
        if line is None:
            return kept if read_program(kept).has_model else text
        lines = kept.split("\n")
        margins = [i for i, s in enumerate(lines[:line]) if s[:1].strip() and not s.startswith(")")]
        if not margins or margins[-1] == 0:
            return text
        kept = "\n".join(lines[: margins[-1]])
    return text


def _block(text: str, language: str) -> Block:
    # like a fence that is not closed: nothing says that the code is all there
    return Block(text=text, language=language, path=None, is_closed=False)
