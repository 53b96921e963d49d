"""Compulsory bytes: what a kernel cannot do its work without reading and writing.

An input's element counts where the output's derivative by it is not zero: a kernel that does not
know its value cannot give the right result. That leaves out what a slice, a stride or a mask skips,
and errs towards too little (the losers of a maximum, integers), which makes the floor lower and
refuses nobody. An input with a structure of its own (triangular, repeated) never counts, for a
kernel may know it. Cancellation leaves derivatives of rounding alone, so the audit has to have seen
the output change with each input that counts, and with every part of it, and the problem must be
ranked.

An output counts where the audit saw it vary, once along dimensions in which it repeats, and not
where it is a view of what is given. Parameters never count, for `prepare()` may pack them.

Attention needs no run: of its places a mask leaves a known share, and that many of its queries,
keys and values are read at least. Nothing counts under a `score_mod`, which may hide places too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from hotloop.core.audit import Audit, TrialState
from hotloop.errors import ProblemError
from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.attribution import user_code
from hotloop.worker.degeneracy import CONSTANT_FRAC
from hotloop.worker.inputs import seeded
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.module_runner import ModuleRunner, bind, quiet
from hotloop.worker.physics_floor import Demand
from hotloop.worker.precision import applied
from hotloop.worker.random_sources import DERIVED, FREE
from hotloop.worker.reference import Draw, Reference

COTANGENT_SEED = 1


def compulsory(reference: Reference, draw: Draw, audit: Audit | None) -> Demand | None:
    """Return what a call on this draw cannot do without.

    Takes a forward and a backward pass of a model; only where a time is suspect.

    Returns:
        None where nothing can be said: an audit is missing, the problem is not ranked, attention
        has a `score_mod` or captured tensors, or the model has no derivative.
    """
    if audit is None or not audit.rankable:
        return None
    if isinstance(reference, AttentionReference):
        return _of_attention(reference, draw, audit)
    if isinstance(reference, ModelReference):
        try:
            return _of_model(reference, draw, audit)
        except (ProblemError, RuntimeError):  # no derivative, or no memory for it
            return None
    return None


def compulsory_flops(reference: Reference, draw: Draw) -> float:
    """Return the operations that nothing can save: those of attention, by its mask.

    0 for models, where algebra may save some, where captured tensors decide the mask, and under a
    `score_mod`: whether it hides places from the result is not known.
    """
    if not isinstance(reference, AttentionReference) or draw.state:
        return 0.0
    return 0.0 if reference.mods.score_mod is not None else reference.useful_flops or 0.0


def _of_attention(reference: AttentionReference, draw: Draw, audit: Audit) -> Demand | None:
    flops = compulsory_flops(reference, draw)
    if not flops or not reference.flops or not all(_matters(name, audit) for name in "qkv"):
        return None
    # A row that sees one key copies its value. Of the places, at most one a row is such a row's;
    # no query or key has more of the others than all of its places.
    share = max(0.0, flops / reference.flops - 1.0 / reference.sizes.Skv)
    q, k, v = (t.nbytes for t in draw.inputs)
    return Demand(int(share * (q + k + v)), int(share * q), flops)


def _of_model(reference: ModelReference, draw: Draw, audit: Audit) -> Demand:
    leaves = {id(t): t.detach().requires_grad_() for t in _counted(reference, draw, audit)}
    # A copy, because forward may write into its arguments, which a leaf does not bear.
    given = tuple(leaves[id(v)].clone() if id(v) in leaves else v for v in draw.inputs)
    with torch.enable_grad(), applied(reference.precision), quiet():
        outputs = _outputs(reference, Draw(given, draw.state, draw.seed, draw.profile))
        written_bytes = _written_bytes(outputs, (*given, *draw.state.values()), audit)
        read_bytes = _sensitive_bytes(reference, outputs, list(leaves.values()))
    return Demand(read_bytes, written_bytes)


def _counted(reference: ModelReference, draw: Draw, audit: Audit) -> Iterator[Tensor]:
    """Yield the inputs that may count: free floats that matter in every part, a storage once."""
    names = iter(reference.specs()[0])
    seen: set[int] = set()
    for place, (value, law) in enumerate(zip(draw.inputs, reference.sources, strict=True)):
        if not isinstance(value, Tensor):
            continue
        name = next(names).name
        # Never drawn by a profile of ours, it may be a function of another input: 1 - x.
        keeps_own = all(reference.reach.keeps(place, profile) for profile in reference.profiles)
        is_free = law in FREE and not (law == DERIVED and keeps_own)
        storage = value.untyped_storage().data_ptr()
        if is_free and value.numel() and storage not in seen and _matters(name, audit):
            seen.add(storage)
            yield value


def _matters(name: str, audit: Audit) -> bool:
    """Whether the audit saw the outputs change with an input, and with each part that it tried."""
    whole = [t.state for t in audit.trials if t.name == f"other values of {name}"]
    parts = [t.state for t in audit.trials if f" of {name}, dimension " in t.name]
    skips = any(state in (TrialState.SAME, TrialState.ACCEPTED) for state in parts)
    return bool(whole) and all(s is TrialState.CAUGHT for s in whole) and not skips


def _sensitive_bytes(
    reference: ModelReference, outputs: Sequence[Tensor], leaves: Sequence[Tensor]
) -> int:
    outputs = [t for t in outputs if t.requires_grad]
    if not outputs or not leaves:
        return 0
    gen = torch.Generator(device=reference.device).manual_seed(COTANGENT_SEED)
    weights = [torch.empty_like(t).normal_(generator=gen) for t in outputs]
    with user_code(reference.loaded.problem, "backward of forward"):
        found = torch.autograd.grad(outputs, leaves, weights, allow_unused=True)
    return sum(int((g.abs() > 0).sum()) * g.element_size() for g in found if g is not None)


def _written_bytes(outputs: Sequence[Tensor], given: Sequence[Any], audit: Audit) -> int:
    seen = {t.untyped_storage().data_ptr() for t in given if isinstance(t, Tensor)}
    total = 0
    for i, output in enumerate(outputs):
        storage = output.untyped_storage().data_ptr()
        varies = audit.spread_frac.get(f"output{i}", 0.0) > CONSTANT_FRAC
        if varies and storage not in seen:
            total += _distinct_elements(output.detach()) * output.element_size()
        seen.add(storage)
    return total


def _distinct_elements(tensor: Tensor) -> int:
    """Return how many elements must lie in memory: a dimension of equal slices holds one."""
    for dim, size in enumerate(tensor.shape):
        first = tensor.narrow(dim, 0, min(size, 1))
        # The second slice alone tells most others apart.
        if size > 1 and all(bool((tensor.narrow(dim, 1, n) == first).all()) for n in (1, size - 1)):
            tensor = first
    return math.prod(tensor.shape)


def _outputs(reference: ModelReference, draw: Draw) -> list[Tensor]:
    """Run a model of its own on a draw; outputs flattened, with their derivatives."""
    loaded = reference.loaded
    model = ModuleRunner(loaded, reference.precision.dtype).model
    bind(model, draw.state)
    with user_code(loaded.problem, "forward"), seeded(draw.seed, reference.device):
        leaves = [leaf for leaf in tree_leaves(model(*draw.inputs)) if leaf is not None]
    return [t if isinstance(t, Tensor) else torch.tensor(t) for t in leaves]
