"""The built-in generator: human-written kernel families with a schedule space.

No model, no key, no network, no torch. It picks the family that covers a problem, offers its
schedules, and writes the kernel of one schedule point as readable Triton or Gluon source. Where
several families cover a problem, which one it is is part of the schedule.
"""

from __future__ import annotations

from hotloop.core.attempt import Proposal, Written
from hotloop.core.graph import AttentionSpec, Graph
from hotloop.core.hopper import is_hopper
from hotloop.core.problem import Policy, ProblemInfo
from hotloop.core.space import Space
from hotloop.errors import UnsupportedOp
from hotloop.templates.analysis import unsupported
from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.decode.family import DecodeFamily
from hotloop.templates.decode.schedule import is_decode
from hotloop.templates.family_choice import Family, FamilyChoice
from hotloop.templates.hopper.family import HopperFamily
from hotloop.templates.hopper.schedule import is_covered
from hotloop.templates.matmul.family import MatmulFamily
from hotloop.templates.matmul.problem import PRODUCTS
from hotloop.templates.rowwise.family import RowwiseFamily


class BuiltinGenerator:
    """Generates kernels from templates, as exact as the policy asks for."""

    name = "builtin"
    is_outside = False

    def __init__(self, policy: Policy = Policy()) -> None:  # noqa: B008  frozen
        self._allows_tf32 = policy.allows_tf32_products

    def space(self, info: ProblemInfo) -> Space:
        """Return the schedules offered for a problem.

        Raises:
            UnsupportedOp: no kernel family covers it; names the operation and its line.
        """
        return family_of(info, allows_tf32=self._allows_tf32).space()

    def needs_call(self, proposal: Proposal) -> bool:
        """Return False: no model is asked."""
        return False

    def cancel(self, proposal_id: int) -> None:
        """Do nothing: no call takes time."""

    def generate(
        self, info: ProblemInfo, proposal: Proposal, *, deadline_s: float | None = None
    ) -> Written:
        """Write the kernel at the proposal's schedule point; the same for the same point.

        Raises:
            UnsupportedOp: no kernel family covers the problem.
            ValueError: the point is outside the space.
        """
        family = family_of(info, allows_tf32=self._allows_tf32)
        return Written(candidate=family.render(family.space().complete(proposal.point)))


def family_of(info: ProblemInfo, *, allows_tf32: bool = False) -> Family:
    """Return the family that covers `info`.

    Args:
        info: the problem.
        allows_tf32: whether its policy allows TF32 in float32 matrix products.

    Raises:
        UnsupportedOp: there is none.
    """
    if info.attention is not None:
        return _attention_family(info, info.attention, allows_tf32)
    if info.graph is None:
        raise UnsupportedOp(
            "the model could not be traced into an op graph, so no kernel template can cover it; "
            "use a model to write the kernel"
        )
    _check_no_opaque(info.graph)
    if any(node.op in PRODUCTS for node in info.graph.nodes):
        return MatmulFamily(info.graph, allows_tf32=allows_tf32)
    return RowwiseFamily(info.graph)


def _attention_family(info: ProblemInfo, spec: AttentionSpec, allows_tf32: bool) -> Family:
    """Return the portable family, beside that for few queries, or for Hopper GPUs, where one fits.

    Caches in pages are read by the family for few queries alone.
    """
    if spec.page_size is not None:
        return DecodeFamily(spec, allows_tf32=allows_tf32)
    portable = AttentionFamily(spec, allows_tf32=allows_tf32)
    if is_decode(spec):
        decode = DecodeFamily(spec, allows_tf32=allows_tf32)
        return FamilyChoice({"decode": decode, "portable": portable})
    on_hopper = info.device == "cuda" and is_hopper(info.environment.get("gpu"))
    if on_hopper and is_covered(spec):
        return FamilyChoice({"hopper": HopperFamily(spec), "portable": portable})
    return portable


def _check_no_opaque(graph: Graph) -> None:
    """Refuse what the tracer could not name, before a family stumbles over its neighbours.

    Raises:
        UnsupportedOp: names the operation and its line.
    """
    for node in graph.nodes:
        if node.op == "opaque":
            raise unsupported(node, "no kernel template covers it")
