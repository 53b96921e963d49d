"""A report read back: its tags, attributes and text, and whether every element is closed."""

from dataclasses import dataclass
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "link"}
CELLS = {"td", "th", "dt", "dd", "li"}
"""What stands apart from what is before it."""


@dataclass
class Element:
    tag: str
    attributes: dict


class Parsed(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.elements, self.problems = [], []
        self._open, self._raw = [], {"script": "", "style": ""}
        self._words = []
        self.feed(html)
        self.close()
        self.problems += [f"<{tag}> is never closed" for tag in self._open]

    @property
    def text(self):
        """All that a reader sees, with single spaces."""
        return " ".join("".join(self._words).split())

    def raw(self, tag):
        """What stands in the script or the style sheet."""
        return self._raw[tag]

    def all(self, tag):
        return [e for e in self.elements if e.tag == tag]

    def handle_starttag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs)))
        if tag in CELLS:
            self._words.append(" ")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self._open or self._open[-1] != tag:
            self.problems.append(f"</{tag}> closes {self._open[-3:]}")
        else:
            self._open.pop()

    def handle_data(self, data):
        if self._open and self._open[-1] in self._raw:
            self._raw[self._open[-1]] += data
        else:
            self._words.append(data)
