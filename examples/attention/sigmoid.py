"""Sigmoid attention: weights are sigmoids, rows are not normalised (arXiv 2409.04431).

The bias -log(S) keeps the sum of a row's weights near 1.

Run: hotloop optimize examples/attention/sigmoid.py
"""

import math

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
normalize = "sigmoid"
BIAS = -math.log(S)


def score_mod(score, b, h, q_idx, kv_idx):
    return score + BIAS
