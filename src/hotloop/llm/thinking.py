"""Tell inline reasoning from the answer.

Many open models write `<think>...</think>` before the answer. Some chat templates put the opening
tag into the prompt, so that the text starts inside; an answer that was cut off never closes it.
Only what stands before the answer counts: the same words inside code are code.
"""

from __future__ import annotations

_TAGS = ("think", "thinking", "reasoning")


def split_thinking(text: str, *, reasoned_apart: bool = False) -> tuple[str, str]:
    """Return (reasoning, answer).

    Args:
        text: what the model wrote.
        reasoned_apart: the reasoning came in a field of its own, so that a lone closing tag is
            part of the answer.
    """
    thoughts: list[str] = []
    rest = text
    while (opened := _opening(rest)) is not None:
        tag, inner = opened
        thought, closing, after = inner.partition(f"</{tag}>")
        thoughts.append(thought.strip())
        if not closing:
            return "\n\n".join(thoughts), ""
        rest = after
    if not thoughts and not reasoned_apart:
        for tag in _TAGS:
            thought, closing, after = text.partition(f"</{tag}>")
            if closing and _is_outside_code(thought):
                return thought.strip(), after.lstrip()
    return "\n\n".join(thoughts), rest.lstrip() if thoughts else text


def _opening(text: str) -> tuple[str, str] | None:
    stripped = text.lstrip()
    for tag in _TAGS:
        if stripped.startswith(f"<{tag}>"):
            return tag, stripped.removeprefix(f"<{tag}>")
    return None


def _is_outside_code(before: str) -> bool:
    return before.count("```") % 2 == 0
