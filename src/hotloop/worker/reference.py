"""Reference: the entry to the judge's trusted side of a problem.

`build_reference` runs the problem's own code, so it is called in the judge only.
"""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

from hotloop.core.problem import ProblemKind
from hotloop.errors import ProblemError
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.draw import Draw, Outputs, Reference
from hotloop.worker.model_reference import ModelReference

if TYPE_CHECKING:
    from hotloop.worker.load import LoadedProblem

__all__ = ["Draw", "Outputs", "Reference", "build_reference"]

_builds = itertools.count()


def build_reference(loaded: LoadedProblem) -> Reference:
    """Build the trusted side of one problem at one workload.

    Finds out which value profiles can judge a candidate, which takes a run in the problem's dtype
    and one in float64 for each.

    Raises:
        ProblemError: the reference raises, is not finite, does not fit on the device, or has
            nothing to judge. The message names the problem.
    """
    _rename_module(loaded)
    try:
        if loaded.problem.kind is ProblemKind.ATTENTION:
            return AttentionReference(loaded)
        return ModelReference(loaded)
    except ProblemError as exc:
        if str(exc).startswith(f"{loaded.problem.name}:"):
            raise
        # What finds it does not always know the file, and many are loaded one after another.
        raise type(exc)(f"{loaded.problem.name}: {exc}") from exc


def _rename_module(loaded: LoadedProblem) -> None:
    """Give the problem's module a name that no other load of the same file has.

    torch.compile finds a traced function's globals by the module's name and remembers the first
    module of that name: another workload's constants and captured tensors would be used.
    """
    module = sys.modules.get(str(loaded.namespace.get("__name__")))
    if module is not None and vars(module) is loaded.namespace:
        module.__name__ = f"{module.__name__}_{next(_builds)}"
        sys.modules[module.__name__] = module
