"""Sliding-window attention: causal, and a query sees the last 512 keys only.

Run: hotloop optimize examples/attention/sliding_window.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
WINDOW = min(512, S // 2)


def mask_mod(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & (q_idx - kv_idx < WINDOW)
