"""Dilated neighbourhood attention on an image: 13 x 13 pixels, every 2nd one in both directions.

Pixels of a 64 x 64 image fall into 2 x 2 groups by the parity of row and column; each group is an
image of its own (Hassani and Shi, arXiv 2209.15001).

Run: hotloop optimize examples/attention/neighbourhood_2d_dilated.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
WIDTH = 2 ** (S.bit_length() // 2)
HEIGHT = -(-S // WIDTH)
RADIUS = 6
DILATION = 2


def is_near(query, key, length):
    same_group = query % DILATION == key % DILATION
    last = (length - 1 - query % DILATION) // DILATION  # of the query's group
    centre = (query // DILATION).clamp(min=RADIUS).minimum(last - RADIUS)
    return same_group & ((centre - key // DILATION).abs() <= RADIUS)


def mask_mod(b, h, q_idx, kv_idx):
    rows = is_near(q_idx // WIDTH, kv_idx // WIDTH, HEIGHT)
    return rows & is_near(q_idx % WIDTH, kv_idx % WIDTH, WIDTH)
