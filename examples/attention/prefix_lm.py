"""Prefix language model: the first 512 positions see each other, the rest is causal.

Run: hotloop optimize examples/attention/prefix_lm.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
PREFIX = min(512, S // 2)


def mask_mod(b, h, q_idx, kv_idx):
    return (kv_idx < PREFIX) | (q_idx >= kv_idx)
