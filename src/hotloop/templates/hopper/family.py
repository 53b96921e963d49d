"""The Hopper attention family: any score_mod and mask_mod, for 16-bit inputs on sm_90."""

from __future__ import annotations

from hotloop.core.candidate import Candidate
from hotloop.core.graph import AttentionSpec
from hotloop.core.space import Point, Space
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.hopper.render import render_hopper
from hotloop.templates.hopper.schedule import hopper_space


class HopperFamily:
    """Warp-specialised attention kernels for one problem; `schedule.is_covered` says for which.

    Raises:
        UnsupportedOp: the score_mod or mask_mod has an operation that cannot be lowered.
    """

    def __init__(self, spec: AttentionSpec) -> None:
        self._plan = AttentionPlan.of(spec)

    def space(self) -> Space:
        """Return the schedule space."""
        return hopper_space(self._plan)

    def render(self, point: Point) -> Candidate:
        """Return the kernel at a complete schedule point."""
        return render_hopper(self._plan, point)
