"""Causal attention of (B, H, S, D), online softmax over tiles of keys."""

import torch
import triton
import triton.language as tl

BLOCK_M = 16
BLOCK_N = 16


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    y_ptr,
    S,
    scale,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    head = tl.program_id(1) * S * D
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    q_at = rows[:, None] * D + dims[None, :]
    q = tl.load(q_ptr + head + q_at, mask=(rows < S)[:, None], other=0.0)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    for start in range(0, tl.program_id(0) * BLOCK_M + BLOCK_M, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        kv_at = keys[:, None] * D + dims[None, :]
        k = tl.load(k_ptr + head + kv_at, mask=(keys < S)[:, None], other=0.0)
        v = tl.load(v_ptr + head + kv_at, mask=(keys < S)[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where(rows[:, None] >= keys[None, :], s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, 1))
        alpha = tl.exp(top - new_top)
        p = tl.exp(s - new_top[:, None])
        total = total * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p, v, acc, input_precision="ieee")
        top = new_top
    tl.store(y_ptr + head + q_at, acc / total[:, None], mask=(rows < S)[:, None])


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        B, H, S, D = q.shape
        y = torch.empty_like(q)
        attention_kernel[(triton.cdiv(S, BLOCK_M), B * H)](
            q, k, v, y, S, D**-0.5, D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N
        )
        return y
