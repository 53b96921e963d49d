"""The decode family: a few queries over a long cache, paged or not, any score_mod and mask_mod."""

from __future__ import annotations

from hotloop.core.candidate import Candidate
from hotloop.core.graph import AttentionSpec
from hotloop.core.space import Point, Space
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.decode.render import render_decode
from hotloop.templates.decode.schedule import check_rows, decode_space


class DecodeFamily:
    """Split-key attention kernels for one problem; `schedule.is_decode` says for which.

    `allows_tf32` says whether its policy lets float32 products round their operands to TF32.

    Raises:
        UnsupportedOp: the score_mod or mask_mod has an operation that cannot be lowered, or a paged
            cache has more queries than a decode step.
    """

    def __init__(self, spec: AttentionSpec, *, allows_tf32: bool = False) -> None:
        check_rows(spec)
        self._plan = AttentionPlan.of(spec, reads_pages=True, allows_tf32=allows_tf32)

    def space(self) -> Space:
        """Return the schedule space."""
        return decode_space(self._plan)

    def render(self, point: Point) -> Candidate:
        """Return the kernel at a complete schedule point."""
        return render_decode(self._plan, point)
