"""Relative positional encoding: the distance from key to query is added to the score.

Run: hotloop optimize examples/attention/relative.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
