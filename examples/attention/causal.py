"""Causal attention: a query sees the keys up to its own position.

Run: hotloop optimize examples/attention/causal.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"


def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
