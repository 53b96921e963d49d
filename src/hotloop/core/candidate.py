"""Candidate: source files in one language with an entry point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.record import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of a candidate; `path` is relative, without `..`."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a generator proposes. Its id is the hash of its content, not of its name or time."""

    language: str
    """`triton`, `gluon` or `cuda`: a name of `core.language`."""
    sources: tuple[SourceFile, ...]
    entry: str = "kernel.py"
    """The file that holds `ModelNew`, or the `.cu` file."""
    pins: Mapping[str, Any] = field(default_factory=dict)
    """Values chosen for the candidate's declared `TUNABLES`; part of the content."""

    @property
    def id(self) -> str:
        """16 hex digits over language, sources, entry and pins."""
        return digest([self.language, self.sources, self.entry, self.pins])

    def text(self, path: str | None = None) -> str:
        """Return the text of `path`, by default of the entry file.

        Raises:
            KeyError: there is no such file.
        """
        wanted = path or self.entry
        for source in self.sources:
            if source.path == wanted:
                return source.text
        raise KeyError(wanted)
