"""Dilated window: a query sees every 4th key of those at most 512 positions away.

Run: hotloop optimize examples/attention/dilated_window.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
REACH = min(512, S // 2)
DILATION = 4


def mask_mod(b, h, q_idx, kv_idx):
    distance = q_idx - kv_idx
    return (distance.abs() <= REACH) & (distance % DILATION == 0)
