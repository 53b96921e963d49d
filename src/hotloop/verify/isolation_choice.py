"""Which isolation tier a candidate gets: what was demanded, T1 at least, or an error."""

from __future__ import annotations

from hotloop import sandbox
from hotloop.errors import ConfigError, SandboxUnavailable

TIERS = ("T0", "T1", "T2")


def choose_tier(min_isolation: str) -> str:
    """Return the tier to run at: T1, or what `min_isolation` demands.

    Raises:
        ConfigError: the name is unknown.
        SandboxUnavailable: this machine cannot give it.
    """
    check_tier_name(min_isolation)
    best = str(sandbox.probe().best_tier)
    if TIERS.index(best) < TIERS.index(min_isolation):
        raise SandboxUnavailable(
            f"--min-isolation {min_isolation}: this machine reaches {best}; run `hotloop doctor` "
            "to see what is missing"
        )
    return min_isolation


def check_tier_name(name: str) -> None:
    """Make sure that there is such a tier.

    Raises:
        ConfigError: there is none.
    """
    if name not in TIERS:
        raise ConfigError(f"--min-isolation: expected T0, T1 or T2, got {name!r}")
