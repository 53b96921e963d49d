"""The relative bias of T5: a learned number for each head and bucket of distances.

Distances up to 7 have buckets of their own, larger ones share buckets that widen up to 128
(Raffel et al., arXiv 1910.10683). `BUCKET` holds the bucket of each distance, so that no logarithm
decides at the edges.

Run: hotloop optimize examples/attention/t5_bias.py
"""

import math

import torch

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
BUCKETS = 32  # half of them for keys before the query, half for keys after it
FARTHEST = 128
bias = None  # (H, BUCKETS): from get_buffers


def bucket(distance):
    half = BUCKETS // 2
    exact = half // 2
    if distance < exact:
        return distance
    steps = math.log(distance / exact) / math.log(FARTHEST / exact) * (half - exact)
    return min(exact + int(steps + 1e-9), half - 1)


BUCKET = torch.tensor([bucket(n) for n in range(FARTHEST + 1)], dtype=torch.int32)


def get_buffers(generator):
    return {"bias": torch.randn(H, BUCKETS, generator=generator)}


def score_mod(score, b, h, q_idx, kv_idx):
    distance = (kv_idx - q_idx).abs().clamp(max=FARTHEST)
    side = torch.where(kv_idx > q_idx, BUCKETS // 2, 0)
    return score + bias[h, BUCKET[distance] + side]
