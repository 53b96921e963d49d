"""Finding: one weakness that reading a candidate's code shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One weakness."""

    rule: str
    """`no_mask`, `no_other`, `accumulator`, `serial_loop`, `dot_precision`, `shared_memory`,
    `uncoalesced`, `autotune`."""
    line: int
    """In the file, from 1."""
    message: str
    """One sentence."""
