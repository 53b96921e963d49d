"""KernelBench level 1, problem 40: layer norm over (features, height, width).

A row has millions of elements, so three kernels share the work: mean and squared deviations of each
chunk, their merge for each row, and the normalisation.
"""

import torch
import triton
import triton.language as tl

BLOCK = 8192


@triton.jit
def chunk_stats_kernel(x_ptr, mean_ptr, m2_ptr, n, BLOCK: tl.constexpr):
    chunk, chunks = tl.program_id(0), tl.num_programs(0)
    row = tl.program_id(1).to(tl.int64)
    i = chunk * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    mean = tl.sum(x, 0) / tl.minimum(n - chunk * BLOCK, BLOCK)
    off = tl.where(i < n, x - mean, 0.0)
    tl.store(mean_ptr + row * chunks + chunk, mean)
    tl.store(m2_ptr + row * chunks + chunk, tl.sum(off * off, 0))


@triton.jit
def merge_kernel(mean_ptr, m2_ptr, row_ptr, n, chunks, eps, BLOCK: tl.constexpr, C: tl.constexpr):
    # Chan, Golub, LeVeque (1979): M2 = sum of the chunks' M2 + sum of size * (mean - row mean)^2
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, C)
    size = tl.where(c < chunks, tl.minimum(n - c * BLOCK, BLOCK), 0).to(tl.float32)
    means = tl.load(mean_ptr + row * chunks + c, mask=c < chunks, other=0.0)
    mean = tl.sum(means * size, 0) / n
    m2 = tl.load(m2_ptr + row * chunks + c, mask=c < chunks, other=0.0)
    m2 += size * (means - mean) * (means - mean)
    tl.store(row_ptr + row * 2, mean)
    tl.store(row_ptr + row * 2 + 1, 1.0 / tl.sqrt(tl.sum(m2, 0) / n + eps))


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, b_ptr, row_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(1).to(tl.int64)
    mean, scale = tl.load(row_ptr + row * 2), tl.load(row_ptr + row * 2 + 1)
    x = tl.load(x_ptr + row * n + i, mask=i < n)
    w = tl.load(w_ptr + i, mask=i < n)
    b = tl.load(b_ptr + i, mask=i < n)
    tl.store(y_ptr + row * n + i, (x - mean) * scale * w + b, mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = torch.nn.LayerNorm(normalized_shape)

    def forward(self, x):
        n = self.ln.weight.numel()
        rows, chunks = x.numel() // n, triton.cdiv(n, BLOCK)
        means, m2 = x.new_empty(rows, chunks), x.new_empty(rows, chunks)
        stats, y = x.new_empty(rows, 2), torch.empty_like(x)
        C = triton.next_power_of_2(chunks)
        chunk_stats_kernel[(chunks, rows)](x, means, m2, n, BLOCK=BLOCK, num_warps=8)
        merge_kernel[(rows,)](means, m2, stats, n, chunks, self.ln.eps, BLOCK=BLOCK, C=C)
        layer_norm_kernel[(chunks, rows)](
            x, self.ln.weight, self.ln.bias, stats, y, n, BLOCK=BLOCK, num_warps=8
        )
        return y
