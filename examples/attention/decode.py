"""Decode: one new query for each sequence of a batch, over its keys so far; grouped heads.

`lengths` holds how many keys each sequence has. It is drawn anew for every correctness check; timed
calls use the lengths of `buffer_seed`.

Run: hotloop optimize examples/attention/decode.py
"""

import torch

B, H, Hkv, S, Skv, D = 32, 32, 8, 1, 8192, 128
dtype = "bfloat16"
buffer_seed = 3
lengths = None  # the keys of each sequence, (B,): from get_buffers


def get_buffers(generator):
    drawn = torch.randint(Skv // 4, Skv + 1, (B,), generator=generator)
    return {"lengths": drawn.to(torch.int32)}


def mask_mod(b, h, q_idx, kv_idx):
    return kv_idx < lengths[b]
