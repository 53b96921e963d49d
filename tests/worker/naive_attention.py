"""Attention written out for one row at a time, in float64, for comparison."""

import math

import torch


def naive_attention(q, k, v, *, score=None, mask=None, scale=None, sigmoid=False):
    """`score(s, b, h, i, j)` and `mask(b, h, i, j)` take and return plain numbers."""
    q, k, v = q.double(), k.double(), v.double()
    batch, heads, rows, depth = q.shape
    group = heads // k.shape[1]
    scale = scale or 1 / math.sqrt(depth)
    out = torch.zeros(batch, heads, rows, v.shape[-1], dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for i in range(rows):
                products = (k[b, h // group] @ q[b, h, i]).tolist()
                seen = [j for j in range(len(products)) if mask is None or mask(b, h, i, j)]
                if not seen:
                    continue
                scores = [products[j] * scale for j in seen]
                if score is not None:
                    scores = [score(s, b, h, i, j) for s, j in zip(scores, seen, strict=True)]
                values = torch.tensor(scores, dtype=torch.float64)
                weights = values.sigmoid() if sigmoid else torch.softmax(values, 0)
                out[b, h, i] = weights @ v[b, h // group, seen]
    return out
