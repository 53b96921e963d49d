"""Causal attention inside documents, two query heads a key head."""

import torch

B, H, Hkv, S, D = 1, 2, 1, 32, 16
dtype = "float32"


def get_buffers(generator):
    return {"doc": torch.randint(0, 3, (S,), generator=generator).sort().values}


def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (doc[q_idx] == doc[kv_idx])  # noqa: F821  drawn by get_buffers
