"""What analysis finds in one attention problem, before any schedule is chosen.

`AttentionPlan` holds the normalised problem, the terms of the score and the region of the mask;
`schedule` offers what it allows, `render` writes it down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from hotloop.core.graph import AttentionSpec, Graph
from hotloop.errors import UnsupportedOp
from hotloop.templates.analysis import LEAF_AXES, ScalarGraph
from hotloop.templates.attention.normalize import move_masks_out_of_score
from hotloop.templates.attention.region import RegionFinder
from hotloop.templates.attention.score import IDENTITY, ScoreSum, bound_log2, split_score
from hotloop.templates.attention.span import EVERYTHING, Region
from hotloop.templates.operators import POINTWISE

LOWERABLE = POINTWISE | frozenset(LEAF_AXES) | {"buffer", "gather"}
"""Operations that a score_mod or mask_mod may have."""

MAX_UNSHIFTED_LOG2 = 100.0
"""exp2 of scores below this bound, summed over 2^27 keys, stays finite in float32 and bfloat16."""

ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


@dataclass(frozen=True)
class AttentionPlan:
    """One attention problem, analysed."""

    spec: AttentionSpec
    allows_tf32: bool = False
    """Whether the policy lets float32 products round their operands to TF32."""

    @classmethod
    def of(
        cls, spec: AttentionSpec, *, reads_pages: bool = False, allows_tf32: bool = False
    ) -> AttentionPlan:
        """Analyse `spec`.

        Args:
            spec: the problem.
            reads_pages: whether the family's kernels can read a paged cache.
            allows_tf32: as the field.

        Raises:
            UnsupportedOp: a dtype, a normalisation or an operation that the template lacks, or
                pages where it wants contiguous keys.
        """
        if spec.page_size is not None and not reads_pages:
            raise UnsupportedOp(
                f"page_size {spec.page_size}: this kernel family reads contiguous k and v only; "
                "the decode family reads pages"
            )
        if spec.dtype not in ELEMENT_BYTES:
            raise UnsupportedOp(
                f"attention in {spec.dtype}: expected one of {sorted(ELEMENT_BYTES)}; change dtype"
            )
        if spec.normalize not in ("softmax", "sigmoid"):
            raise UnsupportedOp(
                f"normalize={spec.normalize!r}: expected 'softmax' or 'sigmoid'; change normalize"
            )
        plan = cls(move_masks_out_of_score(spec), allows_tf32)
        for graph in (plan.score, plan.mask):
            if graph is not None:
                graph.check(LOWERABLE)
        return plan

    @property
    def is_softmax(self) -> bool:
        """Whether rows are normalised."""
        return self.spec.normalize == "softmax"

    @cached_property
    def score(self) -> ScalarGraph | None:
        """The score_mod, analysed."""
        return _analysed(self.spec.score_mod, self.spec)

    @cached_property
    def mask(self) -> ScalarGraph | None:
        """The mask_mod, analysed."""
        return _analysed(self.spec.mask_mod, self.spec)

    @cached_property
    def terms(self) -> ScoreSum:
        """The score_mod as a sum."""
        if self.score is None:
            return IDENTITY
        return split_score(self.score, is_softmax=self.is_softmax)

    @cached_property
    def region(self) -> Region:
        """The keys that a query tile may see, as far as closed forms go."""
        return EVERYTHING if self.mask is None else RegionFinder(self.mask).find()

    @cached_property
    def score_bound_log2(self) -> float:
        """An upper bound of |score| in units of log2; infinity where none is known."""
        return math.inf if self.score is None else bound_log2(self.score, self.terms)

    @property
    def can_skip_running_max(self) -> bool:
        """Whether exp2 of the bare scores cannot overflow.

        float16 has too few exponent bits for the unshifted weights.
        """
        return (
            self.is_softmax
            and self.spec.dtype != "float16"
            and self.score_bound_log2 < MAX_UNSHIFTED_LOG2
        )

    @property
    def uses_tanh(self) -> bool:
        """Whether a tanh is computed somewhere."""
        graphs = [g for g in (self.score, self.mask) if g is not None]
        return any(n.op in ("tanh", "gelu_tanh") for g in graphs for n in g.graph.nodes)

    @cached_property
    def mask_axes(self) -> frozenset[str]:
        """The axes that the mask depends on."""
        return frozenset() if self.mask is None else self.mask.axes[self.mask.output]

    @property
    def gathers_per_score(self) -> int:
        """How many captured values are read for each pair of query and key."""
        both = {"query", "key"}
        graphs = [g for g in (self.score, self.mask) if g is not None]
        return sum(
            node.op == "gather" and both <= graph.axes[node.name]
            for graph in graphs
            for node in graph.graph.nodes
        )

    @property
    def may_be_infinite(self) -> bool:
        """Whether a score may be minus infinity without a mask, as from a captured bias."""
        return self.score is not None and not self.score.is_finite(self.score.output)


def _analysed(graph: Graph | None, spec: AttentionSpec) -> ScalarGraph | None:
    return None if graph is None else ScalarGraph(graph, spec)
