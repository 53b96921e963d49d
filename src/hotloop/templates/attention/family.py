"""The attention family: any score_mod and mask_mod of the vocabulary, one portable kernel."""

from __future__ import annotations

from hotloop.core.candidate import Candidate
from hotloop.core.graph import AttentionSpec
from hotloop.core.space import Point, Space
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.render import render_attention
from hotloop.templates.attention.schedule import attention_space


class AttentionFamily:
    """Attention kernels for one problem.

    `allows_tf32` says whether its policy lets float32 products round their operands to TF32.

    Raises:
        UnsupportedOp: the score_mod or mask_mod has an operation that cannot be lowered.
    """

    def __init__(self, spec: AttentionSpec, *, allows_tf32: bool = False) -> None:
        self._plan = AttentionPlan.of(spec, allows_tf32=allows_tf32)

    def space(self) -> Space:
        """Return the schedule space."""
        return attention_space(self._plan)

    def render(self, point: Point) -> Candidate:
        """Return the kernel at a complete schedule point."""
        return render_attention(self._plan, point)
