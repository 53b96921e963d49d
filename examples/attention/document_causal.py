"""Packed documents, causal: a query sees the keys of its own document up to its own position.

`doc` holds the document of each position. It is drawn anew for every correctness check; timed calls
use the documents of `buffer_seed`.

Run: hotloop optimize examples/attention/document_causal.py
"""

import torch

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
DOCUMENTS = 12
buffer_seed = 3
doc = None  # the document of each position, (S,): from get_buffers


def get_buffers(generator):
    cuts = torch.randperm(S - 1, generator=generator)[: DOCUMENTS - 1] + 1
    starts = torch.zeros(S, dtype=torch.int32)
    starts[cuts] = 1
    return {"doc": starts.cumsum(0, dtype=torch.int32)}


def mask_mod(b, h, q_idx, kv_idx):
    return (doc[q_idx] == doc[kv_idx]) & (q_idx >= kv_idx)
