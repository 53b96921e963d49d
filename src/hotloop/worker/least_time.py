"""The least time of a timed call on this GPU, as closely as a measured time asks for.

A first bound takes all inputs, parameters and outputs for compulsory, which costs nothing to know.
Nearly every time is over it, and so over the true floor. Only for one that is not are the bytes
counted that must move (`compulsory.py`: of a model, a backward pass).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotloop.core.units import format_ms
from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.ceilings import ceilings
from hotloop.worker.compulsory import compulsory_flops
from hotloop.worker.device import copy_rate_gbps
from hotloop.worker.evaluation import Failed
from hotloop.worker.physics_floor import Ceilings, Demand, is_impossible, least_ms
from hotloop.worker.timed import TimedInputs


@dataclass(frozen=True, slots=True)
class Floor:
    """What a measured time was held against."""

    ms: float
    of: str
    """`all bytes`, `compulsory bytes`, or `nothing known` (then it is 0)."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"ms": self.ms, "of": self.of}


def least_time(inputs: TimedInputs, ms: float, *, warm: bool) -> Floor:
    """Return the floor for a measured time.

    Args:
        inputs: of the timed calls.
        ms: the measured time.
        warm: whether the L2 may hold inputs from the call before.
    """
    return floor_for(inputs, ms, ceilings(copy_rate_gbps()), warm=warm)


def floor_for(inputs: TimedInputs, ms: float, device: Ceilings, *, warm: bool) -> Floor:
    """Return the same for a device with these ceilings."""
    reference = inputs.reference
    flops = compulsory_flops(reference, inputs.draw)
    # No call's demand exceeds this: parameters are read, and every output has left the cache.
    whole = Demand(reference.io_bytes, 0, flops)
    upper_ms = least_ms(whole, device, warm=warm)
    if not is_impossible(ms, upper_ms):
        return Floor(upper_ms, "all bytes")
    demand = inputs.demand()
    if demand is None:
        return Floor(0.0, "nothing known")
    return Floor(least_ms(demand, device, warm=warm), "compulsory bytes")


def refuse_impossible(ms: float, floor: Floor) -> None:
    """Refuse a time that is under its floor.

    Raises:
        Failed: no kernel that does the work can be so fast.
    """
    if not is_impossible(ms, floor.ms):
        return
    text = (
        f"expected at least {format_ms(floor.ms)} for what a call must read, write and compute on "
        f"this GPU, measured {format_ms(ms)}: the work is not done in the timed call"
    )
    details = {"measured_ms": ms, "least_ms": floor.ms}
    evidence = Evidence(kind="physics", message=text, details=details)
    raise Failed(Status.REWARD_HACK, Stage.PERFORMANCE, evidence)
