"""Other values for a case: inputs that no call has seen, beside the parameters as they are.

What a forward does on values that it has met says nothing of new ones, which is what timed calls
have. So what looked wrong in one call is tried again on other values, never on the same.
"""

from __future__ import annotations

import secrets

import torch
from torch.utils._pytree import tree_map_only

from hotloop.errors import InfraError
from hotloop.worker.cases import Case, ill_conditioned
from hotloop.worker.compare import reseeded
from hotloop.worker.known_case import Known
from hotloop.worker.memory import ran_out, release_memory
from hotloop.worker.reference import Draw


def other_values(known: Known) -> Known:
    """Return the case on new inputs of its profile, with the same parameters.

    Its goldens and bounds still are those of the old inputs: of their shapes, not their values.
    Where memory is too short for two sets of inputs, it is the case as it was.
    """
    old = known.draw
    try:
        inputs = tree_map_only(torch.Tensor, torch.clone, old.inputs)  # written in place below
        draw = Draw(inputs, old.state, old.seed, old.profile)
        known.reference.redraw_inputs(draw, secrets.randbits(31))
    except Exception as exc:  # noqa: BLE001  the problem's code may have wrapped it
        if not ran_out(exc):
            raise
        release_memory()
        return known
    return Known(known.reference, known.case, draw, known.goldens)


def with_goldens(known: Known) -> Known | None:
    """Return a case of `other_values` with what belongs into its outputs; None where nobody knows.

    Bounds are taken over, renewed by eager's own errors on these inputs.
    """
    reference, case = known.reference, known.case
    try:
        goldens, eager = reference.golden(known.draw), reference.eager(known.draw)
    except InfraError:
        raise
    except Exception as exc:  # noqa: BLE001  the problem's code: it may refuse these values
        if ran_out(exc):
            release_memory()
        return None
    if not all(bool(torch.isfinite(t).all()) for t in goldens if t.is_floating_point()):
        return None
    bounds = tuple(
        reseeded(bound, golden, (member,))
        for bound, golden, member in zip(case.bounds, goldens, eager, strict=True)
    )
    if ill_conditioned(bounds) is not None:
        return None
    return Known(reference, Case(case.workload, case.profile, known.draw.seed, bounds), known.draw,
                 goldens)  # fmt: skip
