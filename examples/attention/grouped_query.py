"""Grouped-query attention, causal: 16 query heads share 4 key and value heads.

Run: hotloop optimize examples/attention/grouped_query.py
"""

B, H, Hkv, S, D = 4, 16, 4, 4096, 128
dtype = "bfloat16"


def mask_mod(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
