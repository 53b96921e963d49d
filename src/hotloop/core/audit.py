"""What the audit of a problem found: which fakes its checks refuse, and on which inputs.

A fake is an output that no honest kernel gives: zeros, the last call's result, a result for which
half of an input was not read. A problem whose checks let one pass on all inputs is not ranked, for
its speed-up could be that of the fake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FakeGroup(StrEnum):
    """What kind of shortcut a fake stands for."""

    OUTPUT = "output"
    """Nothing is computed, or the result is put in the wrong place."""
    READING = "reading"
    """Part of an input is not read."""
    DEPENDENCE = "dependence"
    """Other values stand in place of an input, a parameter, or a block of an input."""
    PRECISION = "precision"
    """The next lower precision."""


class TrialState(StrEnum):
    """What became of one fake."""

    CAUGHT = "caught"
    """Refused on some inputs."""
    ACCEPTED = "accepted"
    """Not refused on any inputs, though its values are not those of the reference."""
    SAME = "same"
    """Not refused, because its values are the reference's own on all inputs where it passed."""
    SKIPPED = "skipped"
    """Not tried; `why` says the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One fake and what the checks made of it."""

    name: str
    """`zeros`, `copy of x`, `only the first part of x, dimension 1, read`, ..."""
    group: FakeGroup
    state: TrialState
    caught_by: str | None = None
    """Workload and value profile that refused it first, `nominal: normal`; None unless caught."""
    passed: tuple[str, ...] = ()
    """Workloads and profiles on which it was not refused, in the order tried."""
    same: tuple[str, ...] = ()
    """Those of `passed` on which its values are the reference's own."""
    why: str = ""
    """Why it was not tried; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What the audit of one problem found."""

    key: str
    """16 hex digits over problem, machine and the judge's code: what the result holds for."""
    trials: tuple[Trial, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why the problem is not ranked, in plain words; empty when it is."""
    findings: tuple[str, ...] = ()
    """What is worth knowing, but does not keep the problem from being ranked."""
    spread_frac: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation over root mean square of each floating output's expected values, on the
    first inputs; 0: a constant. Outputs that are zero everywhere are left out."""
    seconds: float = 0.0
    """Wall clock of the audit itself."""
    is_cut: bool = False
    """Whether time or memory ran out for a fake that is not optional: another try may tell more."""

    @property
    def rankable(self) -> bool:
        """Whether a speed-up on this problem says something."""
        return not self.reasons
