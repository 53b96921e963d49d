"""Compulsory bytes: what a kernel cannot do its work without reading and writing.

An input's element counts where the output's derivative by it is not zero: a kernel that does not
know its value cannot give the right result. That leaves out what a slice, a stride or a mask skips,
and errs towards too little (the losers of a maximum, integers), which makes the floor lower and
refuses nobody. Cancellation leaves derivatives of rounding alone, so the audit has to have seen the
output change with each input that counts, and the problem must be ranked.

An output counts where the audit saw it vary; parameters never do, for `prepare()` may pack them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from hotloop.core.audit import Audit, TrialState
from hotloop.core.problem import TensorSpec
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.degeneracy import CONSTANT_FRAC
from hotloop.worker.inputs import seeded
from hotloop.worker.module_runner import bind, quiet
from hotloop.worker.physics_floor import Demand
from hotloop.worker.precision import applied
from hotloop.worker.reference import Draw, Reference

COTANGENT_SEED = 1


def compulsory(reference: Reference, draw: Draw, audit: Audit | None) -> Demand | None:
    """Return what a call on this draw cannot do without.

    Takes a forward and a backward pass of the reference; only where a time is suspect.

    Returns:
        None where nothing can be said: an audit is missing or the problem is not ranked.
    """
    if audit is None or not audit.rankable:
        return None
    itemsize = min((t.element_size() for t in _tensors(draw.inputs)), default=4)
    return Demand(
        read_bytes=_read_bytes(reference, draw, audit),
        written_bytes=_written_bytes(reference.specs()[1], audit),
        flops=compulsory_flops(reference, draw),
        element_bytes=itemsize,
    )


def compulsory_flops(reference: Reference, draw: Draw) -> float:
    """Return the operations that nothing can save: those of attention, by its mask.

    0 for models, where algebra may save some, and where captured tensors decide the mask.
    """
    if not isinstance(reference, AttentionReference) or draw.state:
        return 0.0
    return reference.useful_flops or reference.flops or 0.0


def _written_bytes(outputs: Sequence[TensorSpec], audit: Audit) -> int:
    return sum(
        _span_elements(spec) * getattr(torch, spec.dtype).itemsize
        for i, spec in enumerate(outputs)
        if audit.spread_frac.get(f"output{i}", 0.0) > CONSTANT_FRAC
    )


def _span_elements(spec: TensorSpec) -> int:
    """Return how many elements lie in memory: an expanded dimension holds one."""
    sizes = zip(spec.shape, spec.strides, strict=True)
    return math.prod(n if stride else min(n, 1) for n, stride in sizes)


def _read_bytes(reference: Reference, draw: Draw, audit: Audit) -> int:
    caught = {t.name for t in audit.trials if t.state is TrialState.CAUGHT}
    names = [spec.name for spec in reference.specs()[0]]
    tensors = list(_tensors(draw.inputs))
    pairs = zip(names, tensors, strict=False)
    counted = [t for name, t in pairs if f"other values of {name}" in caught]
    counted = [t for t in counted if t.dtype.is_floating_point and t.numel()]
    if not counted:
        return 0
    try:
        return sum(_sensitive_bytes(reference, draw, counted))
    except Exception:  # noqa: BLE001  no derivative, or no memory for it: then nothing is claimed
        return 0


def _sensitive_bytes(reference: Reference, draw: Draw, counted: list[Tensor]) -> Iterator[int]:
    leaves = {id(t): t.detach().requires_grad_() for t in counted}
    # A copy, because forward may write into its arguments, which a leaf does not bear.
    inputs = tuple(leaves[id(v)].clone() if id(v) in leaves else v for v in draw.inputs)
    with torch.enable_grad(), applied(reference.precision), quiet():
        outputs = _outputs(reference, Draw(inputs, draw.state, draw.seed, draw.profile))
        outputs = [t for t in outputs if t.requires_grad]
        gen = torch.Generator(device=reference.device).manual_seed(COTANGENT_SEED)
        weights = [torch.empty_like(t).normal_(generator=gen) for t in outputs]
        found = torch.autograd.grad(outputs, list(leaves.values()), weights, allow_unused=True)
    for value in found:
        if value is not None:
            yield int((value.abs() > 0).sum()) * value.element_size()


def _outputs(reference: Reference, draw: Draw) -> list[Tensor]:
    if isinstance(reference, AttentionReference):
        return list(reference.eager(draw))
    loaded = reference.loaded
    assert loaded.model_class is not None
    with seeded(draw.seed, reference.device):
        with torch.device(reference.device):
            model = loaded.model_class(*loaded.init_args)
        bind(model.requires_grad_(False), draw.state)
    with seeded(draw.seed, reference.device):
        return list(_tensors(tree_leaves(model(*draw.inputs))))


def _tensors(values: Sequence[Any]) -> Iterator[Tensor]:
    return (v for v in values if isinstance(v, Tensor))
