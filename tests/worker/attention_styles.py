"""Attention as kernels of several styles compute it, on scores that are whole."""

import math

import torch

from hotloop.worker.attention_math import Grid, Mods, modified

LOG2E = 1 / math.log(2)


def scores_of(q, k, mods: Mods):
    """Return modified scores in float32; k has as many heads as q."""
    grid = Grid.ranges(q.device, *((0, n) for n in (*q.shape[:3], k.shape[2])))
    return modified(q.float() @ k.float().mT, grid, mods)


def finite(top):
    """Return a maximum that may be subtracted: 0 where no key is seen."""
    return torch.where(top.isneginf(), 0, top)


def of_scores(scores, v, dtype, *, narrow=False):
    """Softmax in two passes, its weights in float32 or in the inputs' dtype."""
    weights = torch.exp(scores - finite(scores.amax(-1, keepdim=True)))
    norm = weights.sum(-1, keepdim=True)
    weights = weights.to(dtype) if narrow else weights
    return ((weights.float() @ v.float()) / torch.where(norm == 0, 1, norm)).to(dtype)


def two_passes(q, k, v, mods, *, narrow=False):
    """The row's maximum first, or sigmoids."""
    scores = scores_of(q, k, mods)
    if not mods.sigmoid:
        return of_scores(scores, v, q.dtype, narrow=narrow)
    weights = scores.sigmoid().to(q.dtype) if narrow else scores.sigmoid()
    return (weights.float() @ v.float()).to(q.dtype)


def online(q, k, v, mods, *, narrow=False, lazy=0.0, tile=64):
    """Online softmax in powers of two; `lazy`: by how much a maximum may be exceeded."""
    scores = scores_of(q, k, mods) * LOG2E
    top = torch.full((*q.shape[:3], 1), -math.inf)
    norm, out = torch.zeros_like(top), torch.zeros(*q.shape[:3], v.shape[-1])
    for start in range(0, k.shape[2], tile):
        part = scores[..., start : start + tile]
        values = v[:, :, start : start + tile].float()
        if mods.sigmoid:
            weights, rescale = 1 / (1 + torch.exp2(-part)), 1.0
        else:
            higher = torch.maximum(top, part.amax(-1, keepdim=True))
            higher = torch.where(higher - top > lazy, higher, top)
            rescale = torch.exp2(torch.where(top.isneginf(), -math.inf, top - finite(higher)))
            weights, top = torch.exp2(part - finite(higher)), higher
        norm = norm * rescale + weights.sum(-1, keepdim=True)
        weights = weights.to(q.dtype).float() if narrow else weights
        out = out * rescale + weights @ values
    if mods.sigmoid:
        return out.to(q.dtype)
    return (out / torch.where(norm == 0, 1, norm)).to(q.dtype)


def split(q, k, v, mods, *, narrow=False, parts=4):
    """Split-KV: parts of the keys apart, joined by their log-sum-exp."""
    if mods.sigmoid:
        return online(q, k, v, mods, narrow=narrow, tile=-(-k.shape[2] // parts))
    scores = scores_of(q, k, mods)
    pairs = list(zip(scores.chunk(parts, -1), v.chunk(parts, 2), strict=True))
    outs = torch.stack([_partial(s, values, q.dtype, narrow) for s, values in pairs])
    levels = torch.stack([s.logsumexp(-1, keepdim=True) for s, _ in pairs])
    shares = torch.exp(levels - finite(levels.amax(0)))
    total = shares.sum(0)
    return ((outs * shares).sum(0) / torch.where(total == 0, 1, total)).to(q.dtype)


def _partial(scores, v, dtype, narrow):
    weights = torch.exp(scores - finite(scores.amax(-1, keepdim=True)))
    norm = weights.sum(-1, keepdim=True)
    weights = weights.to(dtype).float() if narrow else weights
    return (weights @ v.float()) / torch.where(norm == 0, 1, norm)


HONEST = {
    "two passes": two_passes,
    "two passes, narrow": lambda *a: two_passes(*a, narrow=True),
    "online": online,
    "online, narrow": lambda *a: online(*a, narrow=True, tile=32),
    "lazily rescaled": lambda *a: online(*a, lazy=8.0),
    "lazily rescaled, narrow": lambda *a: online(*a, lazy=8.0, narrow=True),
    "split": split,
    "split, narrow": lambda *a: split(*a, narrow=True),
}
"""By name: (q, k, v, mods) -> output."""
