"""Neighbourhood attention on a sequence: a window of 255 keys around each query.

At both ends the window stays inside the sequence, so that every query sees as many keys
(Hassani et al., arXiv 2204.07143).

Run: hotloop optimize examples/attention/neighbourhood_1d.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
RADIUS = min(127, (S - 1) // 2)


def mask_mod(b, h, q_idx, kv_idx):
    centre = q_idx.clamp(RADIUS, S - 1 - RADIUS)
    return (centre - kv_idx).abs() <= RADIUS
