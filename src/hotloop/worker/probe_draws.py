"""Draws for index probes: which tensors of a problem may hold any value, and neutral ones in all.

An input with a structure of its own (a mask, labels, a triangular matrix) keeps its values, as do
buffers: a candidate may rely on them.

Not here: what is written into the tensor that is probed (`index_probe.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hotloop.worker.attention_reference import AttentionReference
from hotloop.worker.model_reference import ModelReference
from hotloop.worker.random_sources import FREE
from hotloop.worker.reference import Draw, Reference

MAX_TENSORS = 4
PEAK = 64.0
"""Score of a row of q with the row of k that it is paired with."""
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Probed:
    """A tensor that is probed: an input by its position, or a parameter by its name."""

    name: str
    key: int | str
    dims: tuple[int, ...]
    """Dimensions of more than one index."""


def probed_tensors(reference: Reference, draw: Draw) -> list[Probed]:
    """Return what is worth a probe, inputs first; of attention `v` alone, in which it is linear."""
    places = [i for i, v in enumerate(draw.inputs) if isinstance(v, Tensor)]
    names = (spec.name for spec in reference.specs()[0])
    named: list[tuple[str, int | str, Tensor]] = [
        (name, place, draw.inputs[place])
        for name, place in zip(names, places, strict=True)
        if _is_free(reference, place)
    ]
    if isinstance(reference, AttentionReference):
        named = named[2:]
    named += [(name, name, draw.state[name]) for name in sorted(_parameters(reference))]
    found = [
        Probed(name, key, tuple(d for d, size in enumerate(value.shape) if size > 1))
        for name, key, value in named
        if value.dtype in FLOATS
    ]
    return [probed for probed in found if probed.dims][:MAX_TENSORS]


def tensor_of(draw: Draw, probed: Probed) -> Tensor:
    """Return the tensor that is probed."""
    tensor = draw.state[probed.key] if isinstance(probed.key, str) else draw.inputs[probed.key]
    assert isinstance(tensor, Tensor)
    return tensor


def neutral_draw(reference: Reference, draw: Draw) -> Draw:
    """Return a draw with 1 in new tensors wherever any value may stand, and the rest as it is."""
    inputs = tuple(
        _ones(value) if _is_free(reference, place) else value
        for place, value in enumerate(draw.inputs)
    )
    own = _parameters(reference)
    state = {name: _ones(value) if name in own else value for name, value in draw.state.items()}
    return Draw(inputs, state, draw.seed, draw.profile)


def paired_draw(reference: AttentionReference, draw: Draw) -> Draw:
    """Return a draw in which row i of q scores `PEAK` with row i of k and far less with others.

    Rows are of random signs: two of them have a product of some sqrt(D), one with itself D.
    """
    q, k, v = draw.inputs
    gen = torch.Generator(device=q.device).manual_seed(0)
    rows, columns = max(q.shape[2], k.shape[2]), q.shape[3]
    signs = torch.randint(0, 2, (rows, columns), generator=gen, device=q.device) * 2 - 1
    size = PEAK / (reference.mods.scale * columns)
    pairs = (
        (signs[: q.shape[2]] * size).to(q.dtype).expand_as(q).contiguous(),
        signs[: k.shape[2]].to(k.dtype).expand_as(k).contiguous(),
    )
    return Draw((*pairs, torch.ones_like(v)), draw.state, draw.seed, draw.profile)


def _ones(value: Tensor) -> Tensor:
    return torch.ones_like(value) if value.dtype in FLOATS else value


def _is_free(reference: Reference, place: int) -> bool:
    """Whether any value may stand in an input: `get_inputs` gives it no structure."""
    if isinstance(reference, ModelReference):
        return reference.sources[place] in FREE
    return isinstance(reference, AttentionReference)


def _parameters(reference: Reference) -> frozenset[str]:
    return reference.parameter_names if isinstance(reference, ModelReference) else frozenset()
