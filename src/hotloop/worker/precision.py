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
import torch.compiler.config

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


@dataclass(frozen=True, slots=True)
class _Flags:
    """What torch is told."""

    matmul: str
    """`tf32`, `ieee` or `none`, as all three; `none` falls back to `torch.backends`' own value."""
    conv: str
    rnn: str
    cpu_matmul: str
    """oneDNN's; what torch calls the float32 matmul precision is of both devices."""
    reduced_sums: tuple[bool, bool]
    """Of bfloat16 and float16."""
    cache_tag: str
    """Part of the key of compiled graphs. Inductor's own key leaves out what convolutions may."""


@contextmanager
def applied(policy: Precision) -> Iterator[None]:
    """Set torch's precision flags to `policy` inside the block, whatever a problem's file set."""
    before = _read()
    _set(_flags_of(policy))
    try:
        yield
    finally:
        _set(before)


def take_on(name: str) -> None:
    """Set this process's flags to the policy called `name` for good.

    For a candidate's process: its library calls begin with what eager's have. What it then changes
    itself the gate judges.

    Raises:
        ProblemError: there is no such policy.
    """
    _set(_flags_of(precision(name)))


def _flags_of(policy: Precision) -> _Flags:
    conv = "tf32" if policy.conv_tf32 else "ieee"
    return _Flags(
        matmul="tf32" if policy.matmul_tf32 else "ieee",
        conv=conv,
        rnn=conv,
        cpu_matmul="ieee",
        reduced_sums=(policy.reduced_sums, policy.reduced_sums),
        cache_tag=f"hotloop-{policy.name}",
    )


def _read() -> _Flags:
    # The newer names: those with `allow_tf32` raise where a file has set only some of the newer.
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return _Flags(
        matmul=matmul.fp32_precision,
        conv=cudnn.conv.fp32_precision,
        rnn=cudnn.rnn.fp32_precision,
        cpu_matmul=torch.backends.mkldnn.matmul.fp32_precision,
        reduced_sums=(
            matmul.allow_bf16_reduced_precision_reduction,
            matmul.allow_fp16_reduced_precision_reduction,
        ),
        cache_tag=torch.compiler.config.cache_key_tag,
    )


def _set(flags: _Flags) -> None:
    # Older and newer names together: compilers and some libraries still read the older, and torch
    # raises where the two disagree.
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    torch.backends.mkldnn.matmul.fp32_precision = flags.cpu_matmul
    matmul.allow_tf32 = flags.matmul == "tf32"
    matmul.fp32_precision = flags.matmul
    cudnn.allow_tf32 = flags.conv == "tf32"
    cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision = flags.conv, flags.rnn
    matmul.allow_bf16_reduced_precision_reduction = flags.reduced_sums[0]
    matmul.allow_fp16_reduced_precision_reduction = flags.reduced_sums[1]
    torch.compiler.config.cache_key_tag = flags.cache_tag
