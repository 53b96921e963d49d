"""Fakes in the next lower precision: rounded operands, rounded results, narrow accumulators.

A problem whose checks do not tell them apart can be won by computing less exactly than the
reference does. Which precision is the next lower one, and how the reference is run in it, is in
`discrimination.py`; what the problem's own policy allows is no fake. Rounding keeps the type that
the output must have, as a kernel does that converts its result back.

Where there are no matrix products, rounded operands win nothing on this hardware: that they pass is
then a finding, and no reason (`Fake.if_accepted`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from hotloop.core.audit import FakeGroup, Trial
from hotloop.worker import attention_math
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.audit_fakes import Consequence, Fake, NothingToTry, skipped
from hotloop.worker.audit_subject import Made, Subject
from hotloop.worker.audit_sums import NarrowSums
from hotloop.worker.discrimination import PRODUCTS, lowered
from hotloop.worker.draw import Outputs
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.precision import applied

LONG_SUM = 8
"""Roundings of an accumulator below which a narrow one is as good as a wide one."""
FLOAT8 = torch.float8_e4m3fn
SIXTEEN_BITS = (torch.float16, torch.bfloat16)


def precision_fakes(subject: Subject) -> tuple[list[Fake], list[Trial]]:
    """Return the fakes in lower precision, and those that make no sense here with why."""
    group = FakeGroup.PRECISION
    dtype = next((b.dtype for b in subject.case.bounds if b.dtype.is_floating_point), None)
    if dtype is None:
        return [], [skipped("lower precision", group, "no output is floating point")]
    fakes: list[Fake] = []
    left: list[Trial] = []
    found = lowered(subject.reference, subject.draw)
    if found is None:
        left.append(skipped("operands rounded", group, "no input is floating point"))
    else:
        follows = Consequence.REASON if has_products(subject) else Consequence.FINDING
        name = f"operands rounded to {found[0]}"
        fakes.append(Fake(name, group, _lowered, if_accepted=follows))
    word = "bf16" if dtype is torch.float32 else "fp8" if dtype in SIXTEEN_BITS else "float32"
    fakes.append(Fake(f"result rounded to {word}", group, _rounded_result(dtype)))
    narrow = dtype if dtype in SIXTEEN_BITS else torch.bfloat16
    label = f"sums kept in {str(narrow).removeprefix('torch.')}"
    return [*fakes, Fake(label, group, _narrow(narrow))], left


def has_products(subject: Subject) -> bool:
    """Whether the reference forms matrix products or convolutions."""
    reference = subject.reference
    if isinstance(reference, ModelReference) and reference.census.names & PRODUCTS:
        return True
    return bool(reference.flops)


def round_result(x: Tensor) -> Tensor:
    """Return values as the next shorter storage type holds them, in x's own dtype.

    float64 as float32, float32 as bfloat16, 16-bit types as float8 (e4m3) with one scale.
    """
    if x.dtype is torch.float64:
        return x.float().double()
    if x.dtype is torch.float32:
        return x.bfloat16().float()
    scale = x.abs().amax().float().clamp(min=1e-30) / torch.finfo(FLOAT8).max
    return ((x.float() / scale).to(FLOAT8).float() * scale).to(x.dtype)


def _lowered(subject: Subject) -> Made | None:
    found = lowered(subject.reference, subject.draw)
    return None if found is None else dict(enumerate(found[1]))


def _rounded_result(dtype: torch.dtype) -> Callable[[Subject], Made]:
    def make(subject: Subject) -> Made:
        outputs = enumerate(subject.honest)
        return {i: round_result(t) for i, t in outputs if t.dtype == dtype and t.numel()}

    return make


def _narrow(narrow: torch.dtype) -> Callable[[Subject], Made]:
    def make(subject: Subject) -> Made:
        mode = NarrowSums(narrow)
        outputs = _run_narrow(subject, mode)
        if mode.longest < LONG_SUM:
            raise NothingToTry("there are no sums of more than a few steps")
        return dict(enumerate(outputs))

    return make


def _run_narrow(subject: Subject, mode: NarrowSums) -> Outputs:
    reference, draw = subject.reference, subject.draw
    if isinstance(reference, AttentionReference):
        q, k, v = reference.in_order(draw)
        with applied(reference.precision), reference.bound(draw.state), mode:
            return (attention_math.unfused(q, k, v, reference.mods),)
    with sdpa_kernel(SDPBackend.MATH), mode:
        return reference.eager(draw)
