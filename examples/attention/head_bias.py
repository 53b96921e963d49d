"""A bias of each head: all scores of head h are raised by 2 * h.

Run: hotloop optimize examples/attention/head_bias.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + 2 * h
