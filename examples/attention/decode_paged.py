"""Decode over a paged KV cache: one new query for each sequence, over its keys so far.

k and v are pages of `page_size` keys, (pages, Hkv, page_size, D), in any order. The buffer
`page_table`, (B, Skv / page_size), names the pages of each sequence; it is drawn anew for every
check. The functions below count the keys of a sequence, wherever they lie.

Run: hotloop optimize examples/attention/decode_paged.py
"""

import torch

B, H, Hkv, S, Skv, D = 32, 32, 8, 1, 8192, 128
dtype = "bfloat16"
page_size = 64
buffer_seed = 3
lengths = None  # the keys of each sequence, (B,): from get_buffers


def get_buffers(generator):
    drawn = torch.randint(Skv // 4, Skv + 1, (B,), generator=generator)
    return {"lengths": drawn.to(torch.int32)}


def mask_mod(b, h, q_idx, kv_idx):
    return kv_idx < lengths[b]
