"""Soft-capped scores, as in Gemma 2: tanh keeps each score between -20 and 20.

Run: hotloop optimize examples/attention/softcap.py
"""

import torch

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
CAP = 20.0


def score_mod(score, b, h, q_idx, kv_idx):
    return CAP * torch.tanh(score / CAP)
