"""Nothing to judge: inputs without a tensor, and outputs without an element.

Every kernel would pass: there is no value that could be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from hotloop.errors import ProblemError


def require_tensors(values: Sequence[Any]) -> None:
    """Refuse arguments of forward that hold no tensor; a forward without arguments may be.

    Raises:
        ProblemError: names what is there instead.
    """
    leaves = tree_leaves(list(values))
    if leaves and not any(isinstance(leaf, Tensor) for leaf in leaves):
        kinds = ", ".join(sorted({type(leaf).__name__ for leaf in leaves}))
        raise ProblemError(
            f"get_inputs() should return the tensors that forward takes, got no tensor but {kinds}"
        )


def require_elements(outputs: Sequence[Tensor]) -> None:
    """Refuse an output that has no elements.

    Raises:
        ProblemError: names its shape.
    """
    for number, output in enumerate(outputs):
        if not output.numel():
            raise ProblemError(
                f"output {number} has the shape {tuple(output.shape)} and so no elements: there is "
                "nothing to judge; make its sizes 1 or more"
            )
