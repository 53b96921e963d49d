"""Triton or Gluon: which one a candidate is in follows from the kernels that its forward launches.

A source may name a Gluon kernel and launch a Triton one, or call Gluon's `jit` by any name. What
was launched is seen in the compile lane, where the forward is followed on tensors without data.
Not covered: a forward that is not followed to its end may launch what nobody saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotloop.core.language import GLUON, TRITON
from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.evaluation import Failed

MAX_NAME = 80


def wrong_dialect(
    language: str, kernels: Sequence[Mapping[str, Any]], *, is_followed: bool
) -> Failed | None:
    """Return the refusal of a candidate whose launched kernels are in the other dialect.

    Args:
        language: that the candidate says it is in; others than `triton` and `gluon` pass.
        kernels: what the lane compiled: of each its `name`, `grids` (empty where it was not
            launched) and `is_gluon`.
        is_followed: whether the forward was followed to its end.

    Returns:
        A refusal as for a candidate in a wrong language; None where there is nothing to refuse.
    """
    launched = [kernel for kernel in kernels if kernel.get("grids")]
    gluon = [kernel for kernel in launched if kernel.get("is_gluon") is True]
    if language == TRITON.name and gluon:
        return _refusal(
            "language",
            f"expected a kernel in triton, got a Gluon one: forward launches {_name(gluon[0])}, "
            "which is Gluon; write it with `@triton.jit`, or call the candidate gluon",
        )
    if language != GLUON.name or gluon or not is_followed:
        return None
    if not launched:
        return _refusal(
            "no_kernel",
            "expected a forward that launches a `@gluon.jit` kernel, it launches none on tensors "
            "of the problem's sizes",
        )
    return _refusal(
        "language",
        f"expected a kernel in gluon, got a Triton one: forward launches {_name(launched[0])} and "
        "no `@gluon.jit` kernel; do the work in one, or call the candidate triton",
    )


def _name(kernel: Mapping[str, Any]) -> str:
    return f"`{str(kernel.get('name', 'kernel'))[:MAX_NAME]}`"


def _refusal(rule: str, text: str) -> Failed:
    evidence = Evidence(kind="policy_violation", message=text, details={"rule": rule})
    return Failed(Status.REJECTED_STATIC, Stage.COMPILE, evidence)
