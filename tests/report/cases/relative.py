"""Relative positions."""

B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
