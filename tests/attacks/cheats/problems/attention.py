"""Causal attention; its policy has no library calls at all."""

B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
