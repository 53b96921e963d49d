import math

import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, scale, S: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0) * S * D
    i, d = tl.arange(0, S), tl.arange(0, D)
    at = head + i[:, None] * D + d[None, :]
    q, k, v = tl.load(q_ptr + at), tl.load(k_ptr + at), tl.load(v_ptr + at)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(i[:, None] >= i[None, :], scores, -float("inf"))
    weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    weights = weights / tl.sum(weights, axis=1)[:, None]
    tl.store(o_ptr + at, tl.dot(weights, v, input_precision="ieee"))


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def attention(q, k, v):
    o = torch.empty_like(q)
    heads = q.shape[0] * q.shape[1]
    attention_kernel[(heads,)](q, k, v, o, 1 / math.sqrt(q.shape[3]), q.shape[2], q.shape[3])
    return o


def copied(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), 256)
    return y
