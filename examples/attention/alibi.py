"""ALiBi: each head lowers the score in proportion to the distance (Press et al., arXiv 2108.12409).

The slope of head h (from 0) is 2 ** (-8 * (h + 1) / H).

Run: hotloop optimize examples/attention/alibi.py
"""

import torch

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"


def score_mod(score, b, h, q_idx, kv_idx):
    slope = torch.exp2(-8.0 * (h + 1) / H)
    return score + slope * (kv_idx - q_idx)
