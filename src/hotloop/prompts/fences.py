"""Find fenced blocks in a model's reply.

Markdown's rules (CommonMark 0.31, section 4.5) bent towards what models write: fences may be
indented, a file name may stand above one or in its info string, the last one may be missing, and a
fence inside a docstring does not end the block. Text in, blocks out; nothing is parsed here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_CLOSERS = 12
"""How many possible ends of one block are looked at."""
MAX_DEPTH = 3
"""How deep blocks inside Markdown blocks are looked for."""

ALIASES = {
    **dict.fromkeys(("python", "py", "python3", "triton", "gluon"), "python"),
    **dict.fromkeys(("cuda", "cu", "cuh", "cpp", "c++", "c", "cuda-cpp", "cuda_c"), "cuda"),
    **dict.fromkeys(("diff", "patch", "udiff"), "diff"),
    **dict.fromkeys(("json", "jsonc"), "json"),
    **dict.fromkeys(("markdown", "md"), "markdown"),
}
"""Info strings by the language they mean; others stay as they are."""

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*(.*)\Z")
_FILE = r"(?P<file>[\w./+-]+\.(?:py|cuh|cu|cpp|h))"
_INFO_FILE = re.compile(rf"(?:^|[\s:=\"'`]){_FILE}(?=$|[\s\"'`,}}])")
_FILE_LINE = re.compile(
    rf"[\s#>*\d.)-]*(?:[Ff]ile(?:\s?name)?|[Pp]ath)?\s*:?\s*[*`\"'(\[]*{_FILE}[*`\"')\]]*\s*:?[*\s]*\Z"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block."""

    text: str
    """Between the fences, without the fence's own indentation."""
    language: str
    """After `ALIASES`, lower case; empty when the fence names none."""
    path: str | None
    """A file name that stands in the info string or on the line above."""
    is_closed: bool


def find_blocks(text: str, depth: int = 0) -> list[Block]:
    """Return the fenced blocks of `text` (lines end in a bare newline), in order.

    A Markdown block that holds fences counts as the blocks inside it.
    """
    lines = text.split("\n")
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        opening = _opening(lines[at])
        if opening is None:
            at += 1
            continue
        end = _closing(lines, at, opening)
        block = _block(lines, at, end)
        inner = find_blocks(block.text, depth + 1) if _may_nest(block, depth) else []
        blocks += inner or [block]
        at = (len(lines) if end is None else end) + 1
    return blocks


def _opening(line: str) -> re.Match[str] | None:
    match = _FENCE.match(line)
    if match is None or (match[2][0] == "`" and "`" in match[3]):
        return None  # `code` in a line of prose
    return match


def _closing(lines: list[str], start: int, opening: re.Match[str]) -> int | None:
    """Return the line that ends the block, None where none does."""
    mark = opening[2]
    first: int | None = None
    seen = 0
    for at in range(start + 1, len(lines)):
        line = lines[at].strip()
        if len(line) < len(mark) or line.strip(mark[0]):
            continue
        if first is None:
            first = at
        if not _is_inside_text("\n".join(lines[start + 1 : at]), opening[3]):
            return at
        seen += 1
        if seen == MAX_CLOSERS:
            break
    return first


def _is_inside_text(code: str, info: str) -> bool:
    """Whether the code ends within a docstring or a block comment, so that a fence is text."""
    is_cuda = ALIASES.get(_word(info)) == "cuda"
    if is_cuda:
        return code.rfind("/*") > code.rfind("*/")
    return code.count('"""') % 2 == 1 or code.count("'''") % 2 == 1


def _block(lines: list[str], start: int, end: int | None) -> Block:
    match = _opening(lines[start])
    assert match is not None, "the caller found a fence on this line"
    indent, mark, info = match.groups()
    body = [line.removeprefix(indent) for line in lines[start + 1 : end]]
    if end is None and body:
        body = _without_attached_fence(body, mark)
    word = _word(info)
    return Block(
        text="\n".join(body),
        language=ALIASES.get(word, word),
        path=_path(info, lines[max(0, start - 2) : start]),
        is_closed=end is not None,
    )


def _without_attached_fence(body: list[str], mark: str) -> list[str]:
    # `return y```` on one line: the fence hangs on the last line of the code
    last = max((i for i, line in enumerate(body) if line.strip()), default=0)
    body[last] = body[last].rstrip().removesuffix(mark)
    return body


def _word(info: str) -> str:
    """Return the language of an info string: `python`, also in `{.python}` and `python:a.py`."""
    words = re.split(r"[\s:,{}=]+", info.strip().lstrip("{."), maxsplit=1)
    word = words[0].lower()
    return word.rsplit(".", 1)[-1] if "." in word else word


def _path(info: str, above: list[str]) -> str | None:
    match = _INFO_FILE.search(info)
    for line in reversed(above):
        if match is None and line.strip():
            match = _FILE_LINE.match(line) if len(line) <= 120 else None
            break
    if match is None:
        return None
    parts = [part for part in match["file"].split("/") if part not in ("", ".")]
    return parts[-1] if ".." in parts or match["file"].startswith("/") else "/".join(parts)


def _may_nest(block: Block, depth: int) -> bool:
    return depth < MAX_DEPTH and block.language in ("", "markdown")
