"""Precision policies: which hardware shortcuts eager, envelope and baselines may take.

One policy holds for every trusted run of a problem. `as_shipped` is what torch does out of the box:
float32 matrix products are not rounded to TF32, cuDNN convolutions are. `bf16` and `fp16` draw
inputs and parameters in that dtype, as KernelBench's own precision option does.

The flags are process-wide, so they are set around each trusted call and restored after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from hotloop.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Precision:
    """What one policy allows."""

    name: str
    matmul_tf32: bool
    conv_tf32: bool
    reduced_sums: bool = True
    """Whether 16-bit matrix products may add partial sums in 16 bits (torch's default)."""
    dtype: torch.dtype | None = None
    """Floating inputs and parameters are cast to it; None keeps the file's own."""


PRECISIONS = {
    p.name: p
    for p in (
        Precision("as_shipped", matmul_tf32=False, conv_tf32=True),
        Precision("strict", matmul_tf32=False, conv_tf32=False, reduced_sums=False),
        Precision("tf32", matmul_tf32=True, conv_tf32=True),
        Precision("bf16", matmul_tf32=False, conv_tf32=True, dtype=torch.bfloat16),
        Precision("fp16", matmul_tf32=False, conv_tf32=True, dtype=torch.float16),
    )
}
STRICT = PRECISIONS["strict"]


def precision(name: str) -> Precision:
    """Return the policy called `name`.

    Raises:
        ProblemError: there is none.
    """
    if name not in PRECISIONS:
        raise ProblemError(f"expected a precision policy of {sorted(PRECISIONS)}, got {name!r}")
    return PRECISIONS[name]


@contextmanager
def applied(policy: Precision) -> Iterator[None]:
    """Set torch's precision flags to `policy` inside the block."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = (
        matmul.allow_tf32,
        cudnn.allow_tf32,
        matmul.allow_bf16_reduced_precision_reduction,
        matmul.allow_fp16_reduced_precision_reduction,
    )
    _set((policy.matmul_tf32, policy.conv_tf32, policy.reduced_sums, policy.reduced_sums))
    try:
        yield
    finally:
        _set(before)


def _set(flags: tuple[bool, bool, bool, bool]) -> None:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    matmul.allow_tf32, cudnn.allow_tf32 = flags[0], flags[1]
    matmul.allow_bf16_reduced_precision_reduction = flags[2]
    matmul.allow_fp16_reduced_precision_reduction = flags[3]
