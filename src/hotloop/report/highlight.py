"""Source text as HTML with comments, strings, numbers and keywords marked.

The text is untrusted, so the patterns need time in proportion to its length whatever it holds, and
everything that is not a tag of ours is escaped. It marks words; it does not parse: on a broken
source the marks may be wrong, the text never is.
"""

from __future__ import annotations

import keyword
import re

from markupsafe import Markup, escape

_WORDS_AND_NUMBERS = r"(?P<word>[^\W\d]\w*)|(?P<number>\d[\w.]*)"
_PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r'|(?P<string>[rRbBfFuU]{0,2}(?:"""[\s\S]*?(?:"""|\Z)'
    r"|'''[\s\S]*?(?:'''|\Z)"
    r'|"(?:\\.|[^"\\\n])*"?'
    r"|'(?:\\.|[^'\\\n])*'?))|" + _WORDS_AND_NUMBERS
)
_CUDA = re.compile(
    r"(?P<comment>//[^\n]*|/\*[\s\S]*?(?:\*/|\Z))"
    r'|(?P<string>"(?:\\.|[^"\\\n])*"?|' + r"'(?:\\.|[^'\\\n])*'?)|" + _WORDS_AND_NUMBERS
)
_CUDA_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        asm auto bool break case char class const constexpr continue default delete do
        double else enum explicit extern false float for goto if inline int long
        namespace new nullptr operator private public return short signed sizeof static
        struct switch template this true typedef typename union unsigned using void
        volatile while __global__ __device__ __host__ __shared__ __restrict__
        __launch_bounds__ __syncthreads
        """,
    )
)
_PYTHON_WORDS = frozenset((*keyword.kwlist, "self"))
_CLASSES = {"comment": "c", "string": "s", "number": "n"}


def highlight(text: str, path: str) -> Markup:
    """Return `text` escaped, with spans of the classes `c`, `s`, `n` and `k`.

    Args:
        text: a source.
        path: its name; `.py` is read as Python, anything else as CUDA C++.
    """
    is_python = path.endswith(".py")
    pattern, words = (_PYTHON, _PYTHON_WORDS) if is_python else (_CUDA, _CUDA_WORDS)
    parts: list[str] = []
    end = 0
    for match in pattern.finditer(text):
        kind = str(match.lastgroup)
        mark = "k" if kind == "word" and match.group() in words else _CLASSES.get(kind)
        if mark is None:
            continue
        parts.append(escape(text[end : match.start()]))
        parts.append(f'<span class="{mark}">{escape(match.group())}</span>')
        end = match.end()
    parts.append(escape(text[end:]))
    return Markup("".join(parts))  # every part is escaped above


def highlight_within(text: str, path: str, limit_bytes: int) -> tuple[Markup, int]:
    """Return as much of `text` as fits `limit_bytes` of HTML, and how many characters are cut."""
    kept = text[:limit_bytes]
    made = highlight(kept, path)
    while (size := len(made.encode("utf-8", "replace"))) > limit_bytes:
        kept = kept[: min(len(kept) - 1, int(len(kept) * 0.95 * limit_bytes / size))]
        made = highlight(kept, path)
    return made, len(text) - len(kept)
