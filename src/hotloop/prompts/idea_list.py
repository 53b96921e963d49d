"""The numbered items of a reply to the prompt that asks for ideas."""

from __future__ import annotations

import re

from hotloop.prompts import untrusted

_ITEM = re.compile(r"\s*(?:[#*-]+\s*)?(?:\*\*)?\d{1,2}[.)](?:\*\*)?\s+(?P<text>\**[^\s*].*)")
"""A numbered item of a list, a heading or a bold line; `2.5x` at a line's start is none."""


def parse_ideas(reply: str) -> list[str]:
    """Return the ideas of a reply to `ideas_prompt`: its numbered items, one line each.

    A blank line ends an item, unless what follows is indented deeper than the item or a bullet, or
    the item is only a title so far.
    """
    ideas: list[str] = []
    indent, is_open, is_title, after_blank = 0, False, False, False
    for line in untrusted.clean(reply.rsplit("</think>", 1)[-1]).split("\n"):
        bare = line.strip().lstrip("#*- ").strip()
        depth = len(line) - len(line.lstrip())
        if item := _ITEM.match(line):
            ideas.append(item["text"])
            indent, is_open, is_title = depth, True, _is_title(line.strip())
        elif bare and is_open:
            is_bullet = line.lstrip().startswith(("- ", "* ", "+ "))
            is_open = not after_blank or is_title or is_bullet or depth > indent
            ideas[-1] += f" {bare}" if is_open else ""
            is_title = False
        after_blank = not bare
    return [untrusted.one_line(idea.replace("**", "").strip(" *"), 1000) for idea in ideas]


def _is_title(item: str) -> bool:
    """Whether a numbered line is a heading, wholly bold, or announces what follows."""
    is_bold = re.fullmatch(r"\*\*[^*]+\*\*", item) is not None
    return is_bold or item.startswith("#") or item.rstrip("*").endswith(":")
