"""Biases on trial: of which sign and size those of `biased` are, and what they show.

Not here: how values are tried (`trials.py`).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import torch

from hotloop.worker.bound import Rigour
from hotloop.worker.eager_errors import SATURATED_FRAC
from hotloop.worker.gross import spread
from hotloop.worker.parameter_reach import BIASES
from hotloop.worker.parameters import bias_signs
from hotloop.worker.pieces import end_share

if TYPE_CHECKING:
    from hotloop.worker.model_reference import ModelReference
    from hotloop.worker.trials import Trials

TRIAL_SEED = 3


def biased_reason(trials: Trials) -> str | None:
    """Choose the biases of `biased`; return why it cannot judge candidates, or None."""
    reference, reason = trials.reference, None
    if reference.bias_rules is Rigour.GROSS:
        _, outputs, _ = reference.specs()
        if not all(spec.dtype.startswith(("float", "bfloat")) for spec in outputs):
            return "which of two numbers beside a large bias is the larger depends on rounding"
        reference.reach.rules["biased"] = (Rigour.GROSS,) * len(outputs)
    sizes = BIASES if trials.is_gross("biased") else BIASES[:1]
    for sign, bias in itertools.product(bias_signs(reference.census), sizes):
        reference.reach.bias_sign, reference.reach.bias = sign, bias
        reason = trials.plain("biased")
        if reason is None and trials.is_gross("biased"):
            reason = _flat(reference)
        if reason is None:
            break
    if reason is not None:
        reference.reach.rules.pop("biased", None)
    return reason


def _flat(reference: ModelReference) -> str | None:
    """Return that gross errors do not show on `biased`, where only they are looked for."""
    _, outputs, _ = reference.specs()
    wide = reference.golden(reference.draw(TRIAL_SEED, "biased"))
    # A sigmoid of -256 is 0 in float32, and no two are equal in float64.
    golden = [g.to(getattr(torch, o.dtype)) for g, o in zip(wide, outputs, strict=True)]
    if any(_follows(g) and end_share(g) <= SATURATED_FRAC for g in golden):
        return None
    return "all of the outputs are at an end of their range, or the same for all samples"


def _follows(golden: torch.Tensor) -> bool:
    """Whether samples differ: behind units that are all dead an output is the last bias alone."""
    if golden.dim() < 2 or golden.shape[0] < 2:
        return spread(golden) > 0
    return bool((golden != golden[:1]).any())
