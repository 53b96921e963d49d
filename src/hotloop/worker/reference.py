"""Reference: the entry to the judge's trusted side of a problem.

`build_reference` runs the problem's own code, so it is called in the judge only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotloop.core.problem import ProblemKind
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.draw import Draw, Outputs, Reference
from hotloop.worker.model_reference import ModelReference

if TYPE_CHECKING:
    from hotloop.worker.load import LoadedProblem

__all__ = ["Draw", "Outputs", "Reference", "build_reference"]


def build_reference(loaded: LoadedProblem) -> Reference:
    """Build the trusted side of one problem at one workload.

    Finds out which value profiles can judge a candidate, which takes a run in the problem's dtype
    and one in float64 for each.

    Raises:
        ProblemError: the reference raises, is not finite, or does not fit on the device.
    """
    if loaded.problem.kind is ProblemKind.ATTENTION:
        return AttentionReference(loaded)
    return ModelReference(loaded)
