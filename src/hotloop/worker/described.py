"""Described outputs: what a process says of the shapes and dtypes of its results.

It only names a failure: a result of another shape is not copied, and its buffer stays poison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.evaluation import Failed


def check_description(described: Sequence[dict[str, Any]], wanted: Sequence[torch.Tensor]) -> None:
    """Hold the described outputs against tensors of the shapes and dtypes that belong there.

    Raises:
        Failed: a shape, the number of outputs, or a dtype is another.
    """
    expected = [(list(t.shape), str(t.dtype).removeprefix("torch.")) for t in wanted]
    got = [(o.get("shape"), o.get("dtype")) for o in described]
    for i, (kind, status) in enumerate(
        (("shape", Status.INCORRECT_SHAPE), ("dtype", Status.INCORRECT_DTYPE))
    ):
        if [e[i] for e in expected] == [g[i] for g in got]:
            continue
        text = f"expected outputs of {kind} {[e[i] for e in expected]}, got {[g[i] for g in got]}"
        raise Failed(status, Stage.CORRECTNESS, Evidence(kind=kind, message=text[:2000]))
