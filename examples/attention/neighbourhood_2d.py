"""Neighbourhood attention on an image: a window of 13 x 13 pixels around each query.

Tokens are the pixels of a 64 x 64 image, row after row. At the borders the window stays inside the
image (Hassani et al., arXiv 2204.07143).

Run: hotloop optimize examples/attention/neighbourhood_2d.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
WIDTH = 2 ** (S.bit_length() // 2)
HEIGHT = -(-S // WIDTH)
RADIUS = 6


def is_near(query, key, length):
    centre = query.clamp(RADIUS, length - 1 - RADIUS)
    return (centre - key).abs() <= RADIUS


def mask_mod(b, h, q_idx, kv_idx):
    rows = is_near(q_idx // WIDTH, kv_idx // WIDTH, HEIGHT)
    return rows & is_near(q_idx % WIDTH, kv_idx % WIDTH, WIDTH)
