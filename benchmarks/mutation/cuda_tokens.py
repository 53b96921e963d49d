"""CUDA C++ as tokens: enough to rewrite an expression without touching comments or strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFuUlL]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<directive>\#[^\n]*)
      | (?P<sign><<<|>>>|<<=|>>=|->|::|\+\+|--|&&|\|\||[-+*/%&|^<>=!]=|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the source; the pieces joined are the source."""

    kind: str
    text: str

    @property
    def is_code(self) -> bool:
        """Whether the compiler sees it as more than space."""
        return self.kind not in ("space", "comment")


def tokens_of(source: str) -> list[Token]:
    """Return all tokens, spaces and comments included."""
    return [Token(m.lastgroup or "sign", m.group()) for m in _TOKEN.finditer(source)]


def text_of(tokens: Sequence[Token]) -> str:
    """Return the source of tokens."""
    return "".join(token.text for token in tokens)


def code_places(tokens: Sequence[Token]) -> list[int]:
    """Return the places of the tokens that are code."""
    return [i for i, token in enumerate(tokens) if token.is_code]


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """Return the place of the bracket that closes the one at `opening`; None if there is none."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    depth, open_sign, close_sign = 0, tokens[opening].text, pairs[tokens[opening].text]
    for i in range(opening, len(tokens)):
        if tokens[i].kind == "sign":
            depth += (tokens[i].text == open_sign) - (tokens[i].text == close_sign)
            if depth == 0:
                return i
    return None
