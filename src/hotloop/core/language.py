"""Languages: what a candidate may be written in, and how to tell them apart.

One table for whoever lists them. How each is found in a reply, checked, built and launched stays
where that is done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language."""

    name: str
    """As options, candidates and journals have it."""
    title: str
    """As a sentence names it."""
    dialect_of: str | None = None
    """A language whose compiler builds this one too: a policy that allows that one allows both."""
    runs_on_cpu: bool = False
    """Whether an interpreter runs it without a GPU; if not, it is compiled there, and no more."""


TRITON = Language(name="triton", title="Triton", runs_on_cpu=True)
GLUON = Language(name="gluon", title="Gluon", dialect_of="triton")
CUDA = Language(name="cuda", title="CUDA C++")

LANGUAGES: Mapping[str, Language] = {x.name: x for x in (TRITON, GLUON, CUDA)}
"""By name; the default first."""


def is_allowed(name: str, allowed: Collection[str]) -> bool:
    """Whether a policy that names `allowed` lets a candidate be written in a language."""
    language = LANGUAGES.get(name)
    return name in allowed or (language is not None and language.dialect_of in allowed)


def allowed_names(allowed: Collection[str]) -> tuple[str, ...]:
    """Return what a policy that names `allowed` lets candidates be written in."""
    dialects = [name for name in LANGUAGES if name not in allowed and is_allowed(name, allowed)]
    return (*allowed, *dialects)


def runs_on_cpu(name: str) -> bool:
    """Whether candidates in a language can be run without a GPU; an unknown one is tried."""
    language = LANGUAGES.get(name)
    return language is None or language.runs_on_cpu
