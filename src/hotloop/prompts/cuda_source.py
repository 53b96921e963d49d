"""CUDA sources in a reply: recognise them, and make sure that their launch description is there.

A `.cu` candidate starts with a comment that is a JSON object. Models also put that object into a
block of its own, or after a line of comments; both are mended here. What the description says is
the judge's business; here it only has to be JSON with `kernels`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from hotloop.prompts.fences import Block

_COMMENT = re.compile(r"/\*(.*?)\*/", re.DOTALL)
_GLOBAL = re.compile(r"\b__global__\b")


class Refused(NamedTuple):
    """Why CUDA blocks make no candidate; `reason` is a value of `NoCodeReason`."""

    reason: str
    message: str


def is_cuda_source(block: Block) -> bool:
    """Whether a block is CUDA C++ itself, not Python that holds some."""
    if block.language == "cuda":
        return True
    is_python = re.search(r"^(import|from|class|def|@)\s*\w", block.text, re.MULTILINE)
    return block.language == "" and bool(_GLOBAL.search(block.text)) and not is_python


def assemble(blocks: Sequence[Block], sources: Sequence[Block]) -> str | Refused:
    """Return the last CUDA source with its launch description in front.

    Args:
        blocks: all blocks of the reply.
        sources: those that are CUDA C++; at least one.
    """
    kernels = [b for b in sources if _GLOBAL.search(b.text)]
    if not kernels:
        return Refused("no_entry", "expected CUDA source with a `__global__` kernel, found none")
    described = [b for b in kernels if _description(b.text) is not None]
    chosen = described[-1] if described else kernels[-1]
    comment = _description(chosen.text)
    if comment is None:
        separate = [b.text for b in blocks if b.language in ("json", "") and _is_json(b.text)]
        if separate:
            return f"/* {separate[-1].strip()} */\n\n{chosen.text}"
        return Refused(
            "no_description",
            'expected the file to start with a comment that holds the JSON {"inputs": ..., '
            '"outputs": ..., "kernels": [...]}, found none',
        )
    body = comment[1].strip()
    try:
        json.loads(body)
    except (ValueError, RecursionError) as exc:
        return Refused("bad_description", f"the JSON in the first comment is broken: {exc}")
    if not chosen.is_closed and chosen.text.count("{") != chosen.text.count("}"):
        return Refused("truncated", "the reply ended inside its code; send the whole file, shorter")
    if comment.start() == len(chosen.text) - len(chosen.text.lstrip()):
        return chosen.text
    rest = chosen.text[: comment.start()] + chosen.text[comment.end() :]
    return f"/* {body} */\n\n{rest.strip()}"


def _description(text: str) -> re.Match[str] | None:
    """Return the first comment that is meant as a description."""
    for comment in _COMMENT.finditer(text):
        if comment[1].strip().startswith("{"):
            return comment
    return None


def _is_json(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "kernels" in value
