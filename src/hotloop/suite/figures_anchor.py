"""Whether a verified kernel leaves products or convolutions to a vendor library.

Two look: the final tier, which sees the calls that are made, and the rule of the static stage,
which reads the source as it would where a policy forbids such calls. One that sees a call is
enough. Where the final tier did not look (too large for the GPU's memory, or a verdict of an older
version) the source alone answers, and the figures say how often.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.candidate import Candidate
from hotloop.core.verdict import Verdict
from hotloop.verify.static_python import library_calls


@dataclass(frozen=True, slots=True)
class Anchor:
    """What was found."""

    found: bool
    by_source_alone: bool
    """Whether the final tier did not look."""


def find_anchor(final: Verdict, candidate: Candidate) -> Anchor:
    """Return whether a kernel that passed the final tier leans on a library.

    Args:
        final: its final verdict.
        candidate: its source.
    """
    # A raw source holds kernels alone: nothing in it can call a library's host function.
    is_raw = not candidate.entry.endswith(".py")
    looked = is_raw or not {"conduct", "library_anchor"}.isdisjoint(final.checks)
    if "library_anchor" in final.checks:
        return Anchor(found=True, by_source_alone=False)
    sources = [source.text for source in candidate.sources if source.path.endswith(".py")]
    read = any(next(library_calls(text), None) is not None for text in sources)
    return Anchor(found=read, by_source_alone=not looked)
