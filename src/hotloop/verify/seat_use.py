"""SeatUse: what one GPU (where there is none, the CPU) did while candidates were judged on it.

It worked while a problem was loaded or a candidate verified there. It was idle while neither was,
although a candidate or a problem waited for it. Else nothing waited: the models were thinking.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatUse:
    """Seconds of one seat, and what came of them."""

    worked_s: float = 0.0
    """A turn was held; with `hotloop judge`, without the wait for compilers."""
    idle_s: float = 0.0
    """Nobody worked there and something waited for it."""
    wall_s: float = 0.0
    """From the first to the last moment that it was ours, over all sessions."""
    verdicts: int = 0
    """Verifications that ended with a verdict there; what needed no turn does not count."""

    @property
    def idle_frac(self) -> float | None:
        """Share of the time in which there was something to do; None where there never was."""
        wanted_s = self.worked_s + self.idle_s
        return self.idle_s / wanted_s if wanted_s > 0 else None

    @property
    def verdicts_per_minute(self) -> float | None:
        """Verdicts per minute of wall clock; None before any time has passed."""
        return self.verdicts * MINUTE_S / self.wall_s if self.wall_s > 0 else None

    def __add__(self, other: SeatUse) -> SeatUse:
        """Return both together: another session of one seat, or another seat."""
        return SeatUse(
            worked_s=self.worked_s + other.worked_s,
            idle_s=self.idle_s + other.idle_s,
            wall_s=self.wall_s + other.wall_s,
            verdicts=self.verdicts + other.verdicts,
        )

    def record(self) -> dict[str, float | int | None]:
        """Return it as JSON values, with the two figures that follow from it."""
        return {
            "worked_s": round(self.worked_s, 3),
            "idle_s": round(self.idle_s, 3),
            "wall_s": round(self.wall_s, 3),
            "verdicts": self.verdicts,
            "idle_frac": _rounded(self.idle_frac),
            "verdicts_per_minute": _rounded(self.verdicts_per_minute),
        }


def together(uses: Iterable[SeatUse]) -> SeatUse:
    """Return the sum of several seats: its rate is per minute and seat."""
    return sum(uses, start=SeatUse())


def describe_use(name: str, use: SeatUse, *, rate: str = "a minute") -> str:
    """Return one line on a seat: seconds of work and of idleness, verdicts and their rate.

    Args:
        name: what to call it; nothing here says GPU.
        use: its seconds.
        rate: what verdicts are per.
    """
    share = "" if use.idle_frac is None else f" ({100 * use.idle_frac:.1f} %)"
    pace = use.verdicts_per_minute
    told = "" if pace is None else f", {pace:.2f} {rate}"
    return (
        f"{name}: worked {use.worked_s:.0f} s of {use.wall_s:.0f} s, idle while something waited "
        f"{use.idle_s:.1f} s{share}; {use.verdicts} verdict(s){told}"
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
